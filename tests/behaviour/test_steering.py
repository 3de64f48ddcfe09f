"""Steering by hosts: preview, should_compact and compact, as methods of the manager."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.testing import ScriptedProvider
from tests.support.gated import Shortening
from tests.support.managed import Managed
from tests.support.recorder import Recorder, recording
from tests.support.rows import tool_session
from tests.support.views import nodes, notes

SMALL: dict[str, Any] = {"segment_tokens": 512, "keep_recent": 4, "prefetch": False}
BUDGET = 4_000


async def fed(turns: int, **given: Any) -> Managed:
    """A session of so many tool calls, each of some 250 tokens."""
    return await Managed(BUDGET, **{**SMALL, **given}).add(tool_session(turns, size=600))


class TestPreview:
    async def test_it_tells_what_compact_then_does(self):
        """Reason, range, segments and calls; the estimated size is no less than the real one."""
        session = await fed(3)
        await session.view()
        await session.add(tool_session(8, size=600, start=3))
        told = await session.manager.preview()
        assert told.reason == "threshold"
        assert session.provider.calls == 0
        assert told.calls == told.segments + told.merged > told.merged
        shown = nodes(await session.compacted())
        [made] = session.host.of("context:post_compact")
        assert made["segments"] == told.segments
        assert session.provider.calls == told.calls
        assert told.messages is not None
        assert shown[0]["metadata"]["messages"][0] == told.messages[0]
        assert shown[-1]["metadata"]["messages"][1] == told.messages[1]
        assert told.before_tokens == made["tokens"] + made["tokens_saved"]
        assert told.after_tokens >= made["tokens"]

    @pytest.mark.parametrize(
        "rows",
        [tool_session(12, size=600), tool_session(40), recording()[:60], recording()[40:200]],
        ids=["long results", "short results", "a desk", "a longer desk"],
    )
    async def test_where_all_texts_are_ready_it_is_what_compact_does(self, rows):
        """The same segments and the same notes, and the same size."""
        session = await Managed(20_000, provider=Shortening, auto_compact=False, **SMALL).take(rows)
        await session.view()
        assert await session.manager.compact() > 0
        await session.manager.undo()
        calls = session.provider.calls
        told = await session.manager.preview()
        assert told.calls == 0
        saved = await session.manager.compact()
        made = session.host.of("context:post_compact")[-1]
        assert made["segments"] == told.segments > 0
        assert made["merged"] == told.merged
        assert made["tokens"] == pytest.approx(told.after_tokens, rel=0.05)
        assert saved == told.before_tokens - made["tokens"]
        row = notes(await session.view())
        assert (told.notes is None) is (row is None)
        assert row is None or str(told.notes) in row["content"]
        assert session.provider.calls == calls

    async def test_where_none_would_be_made_it_has_no_reason(self):
        """An empty session, a short one, one that has just been compacted."""
        told = await (await fed(0)).manager.preview()
        assert (told.reason, told.segments, told.messages, told.calls) == (None, 0, None, 0)
        for turns in (2, 14):
            session = await fed(turns)
            await session.view()
            assert (await session.manager.preview()).reason is None


class TestShouldCompact:
    async def test_it_starts_nothing(self):
        asked = ScriptedProvider(context_window=BUDGET + 1_100, max_output_tokens=100)
        session = await fed(16, host=Recorder({"main": asked}), prefetch=True)
        tokens = await session.manager.get_token_count()
        for _ in range(2):
            assert await session.manager.should_compact()
        await session.manager.settle()
        assert asked.calls == 0
        assert session.host.events == []
        assert await session.manager.get_token_count() == tokens
