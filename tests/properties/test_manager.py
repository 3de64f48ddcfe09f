"""Rules 1 to 7, 10, 12 and 13 over random histories of every shape, through the whole manager."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

from amplifier_core.message_models import ChatRequest
from hypothesis import HealthCheck, given, settings

from context_summarize.testing import ScriptedProvider
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.inside import rendered
from tests.support.managed import Managed
from tests.support.transcripts import transcript
from tests.support.views import nodes

slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

SEGMENT = 64


async def summarised(history: list[dict[str, Any]], **given: Any) -> tuple[list[dict[str, Any]], list[ChatRequest]]:
    """(the marks of the segments of a session of which nothing stays verbatim, what its provider was asked)."""
    parts = itertools.count(1)

    def provider() -> ScriptedProvider:
        return ScriptedProvider(then=lambda _: f"Goal: part {next(parts)}.", context_window=200_000)

    settings = {"keep_recent": 0, "max_concurrency": 1, "segment_tokens": SEGMENT, "prefetch": False, **given}
    made = await Managed(10**6, provider=provider, **settings).take(history)
    await made.view()
    view = await made.compacted()
    await made.manager.close()
    return [row["metadata"] for row in nodes(view)], made.provider.requests


@given(rows=histories(), more=histories(8))
@slow_ok
def test_appending_rows_never_changes_a_closed_segment(rows, more):
    """Rule 13: the segments of a history are a prefix of those of any longer one, with the same keys."""

    async def run() -> None:
        (short, _), (long, _) = await summarised(rows), await summarised([*rows, *more])
        # What lies behind the last full segment is a short one. Where a compaction would free nothing, none runs.
        common = max(0, min(len(short), len(long)) - 1)
        assert long[:common] == short[:common]

    asyncio.run(run())


@given(rows=histories())
@slow_ok
def test_every_rendered_row_of_a_segment_is_shown_to_the_summariser(rows):
    """Rule 12: rows are shown whole, or named as shortened with their size; hook rows are not shown."""

    async def run() -> None:
        segments, asked = await summarised(rows, redact=False)
        told = rendered(rows)
        # Segments that say the same have one key, and are asked for once.
        parts = {mark["key"]: told[mark["messages"][0] - 1 : mark["messages"][1]] for mark in segments}
        for request, part in zip(asked, parts.values(), strict=True):
            shown = transcript(request)
            assert [header for header, _ in shown] == [
                f"#{number} {row.role}{f' {row.name}' if row.name else ''}" for number, row in enumerate(part, 1)
            ]
            for (_, said), whole in zip(shown, part, strict=True):
                if said != whole.text:
                    is_large = len(whole.text.encode()) > 10 * 4 * SEGMENT
                    assert is_large or whole.role == "tool" or "result of" in whole.text
                    assert said[:10] == whole.text[:10]
                    assert len(whole.text.encode()) > 100
                    assert re.search(r"\d+ characters left out", said)
        assert not any(row.text == "hooked" for row in told)

    asyncio.run(run())
