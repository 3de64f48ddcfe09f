"""Steering by hosts: preview, should_compact and compact, as methods of the manager."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider
from tests.support.gated import shortened
from tests.support.recorder import Recorder, recording
from tests.support.rows import call, feed, result, tool_session, user
from tests.support.views import nodes, notes

SMALL: dict[str, Any] = {"segment_tokens": 512, "keep_recent": 4, "prefetch": False}
BUDGET = 4_000


def provider() -> ScriptedProvider:
    return ScriptedProvider(then="Goal: orders. State: found.", name="main")


async def fed(turns: int, recorder: Recorder | None = None, **settings: Any) -> SummarizingContextManager:
    """A manager with a session of so many tool calls, each of some 250 tokens."""
    manager = SummarizingContextManager(recorder, **{**SMALL, **settings})
    await feed(manager, tool_session(turns, size=600))
    return manager


class TestPreview:
    async def test_it_tells_what_compact_then_does(self) -> None:
        """Reason, range, segments and calls; the compaction comes within a tenth of the estimated size."""
        recorder, asked = Recorder(), provider()
        manager = await fed(3, recorder)
        await manager.get_messages_for_request(BUDGET, asked)
        await feed(manager, tool_session(8, size=600, start=3))
        told = await manager.preview()
        assert told.reason == "threshold"
        assert asked.calls == 0
        assert told.calls == told.segments > 0
        await manager.compact()
        [made] = recorder.of("context:post_compact")
        assert made["segments"] == told.segments
        assert asked.calls == told.calls
        shown = nodes(await manager.get_messages_for_request(BUDGET, asked))
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
    async def test_where_all_texts_are_ready_it_is_what_compact_does(self, rows: list[JsonRow]) -> None:
        """The same segments and the same notes, and the same size."""
        recorder, asked = Recorder(), ScriptedProvider(then=shortened)
        manager = SummarizingContextManager(recorder, **{**SMALL, "auto_compact": False})
        await manager.set_messages(rows)
        await manager.get_messages_for_request(20_000, asked)
        assert await manager.compact() > 0
        await manager.undo()
        calls = asked.calls
        told = await manager.preview()
        assert told.calls == 0
        saved = await manager.compact()
        made = recorder.of("context:post_compact")[-1]
        assert made["segments"] == told.segments > 0
        assert made["merged"] == told.merged
        assert made["tokens"] == pytest.approx(told.after_tokens, rel=0.05)
        assert saved == told.before_tokens - made["tokens"]
        row = notes(await manager.get_messages_for_request(20_000, asked))
        assert (told.notes is None) is (row is None)
        assert row is None or str(told.notes) in row["content"]
        assert asked.calls == calls

    @pytest.mark.parametrize("cache", ["memory", "file"])
    async def test_while_the_provider_is_down_and_turns_are_equal_it_is_told(
        self, cache: str, tmp_path: Path, no_hang: None
    ) -> None:
        """An agent that polls: the fallback of one turn has the key of all of them."""
        down = ScriptedProvider(then=AuthenticationError("no key", provider="main"))
        path = "memory" if cache == "memory" else str(tmp_path / "summaries.db")
        manager = SummarizingContextManager(cache=path, segment_tokens=128, keep_recent=2)
        for at in range(40):
            await feed(manager, (user("Is it done?"), call(f"c{at}", "poll"), result(f"c{at}", "pending " * 40)))
            await manager.get_messages_for_request(700, down)
            told = await manager.preview()
            assert 0 < told.after_tokens <= told.before_tokens
        await manager.close()

    async def test_a_store_that_reveals_one_text_at_a_time_is_asked_a_few_times_only(self) -> None:
        """Each text that comes makes another plan."""

        class OneByOne(MemoryStore):
            looks = 0

            async def get(self, keys: Sequence[str]) -> dict[str, Any]:
                self.looks += 1
                return dict([*(await super().get(keys)).items()][:1])

            async def get_records(self, hashes: Sequence[str]) -> dict[str, Any]:
                return {}

        store, asked = OneByOne(), provider()
        for is_first in (True, False):
            manager = SummarizingContextManager(store=store, **{**SMALL, "auto_compact": False})
            await manager.set_messages(tool_session(100, size=600))
            await manager.get_messages_for_request(100_000, asked)
            store.looks = 0
            told = await manager.preview()
            assert told.calls > 4
            if is_first:
                assert await manager.compact() > 0
        assert 1 < store.looks <= 10

    async def test_where_none_would_be_made_it_has_no_reason(self) -> None:
        """An empty session, a short one, one that has just been compacted."""
        empty = SummarizingContextManager(**SMALL)
        told = await empty.preview()
        assert (told.reason, told.segments, told.messages, told.calls) == (None, 0, None, 0)
        short = await fed(2)
        await short.get_messages_for_request(BUDGET, provider())
        assert (await short.preview()).reason is None
        long = await fed(14)
        await long.get_messages_for_request(BUDGET, provider())
        assert (await long.preview()).reason is None
        for manager in (empty, short, long):
            await manager.close()


class TestShouldCompact:
    async def test_it_starts_nothing(self) -> None:
        """No call, no event, no change of the view; also before the first request, with a provider that is mounted."""
        asked = ScriptedProvider(context_window=BUDGET + 1_100, max_output_tokens=100)
        recorder = Recorder({"main": asked})
        manager = await fed(16, recorder, prefetch=True)
        tokens = await manager.get_token_count()
        for _ in range(2):
            assert await manager.should_compact()
        await manager.settle()
        assert asked.calls == 0
        assert recorder.events == []
        assert await manager.get_token_count() == tokens

    @pytest.mark.parametrize("settings", [{"auto_compact": False}, {"keep_recent": 1_000}])
    async def test_where_the_next_request_would_make_none_it_is_false(self, settings: dict[str, Any]) -> None:
        """It is switched off, or nothing may be summarised."""
        manager = await fed(11, **settings)
        await manager.get_messages_for_request(BUDGET, provider())
        assert not await manager.should_compact()
