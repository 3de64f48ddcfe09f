"""Rules 1 to 7, 10, 12 and 13 over random histories of every shape, through the whole manager."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from amplifier_core.message_models import ChatRequest
from hypothesis import HealthCheck, given, settings

from context_summarize.testing import ScriptedProvider
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.managed import Managed
from tests.support.snapshot import Snapshot, snapshot
from tests.support.transcripts import transcript

slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

SEGMENT = 64


def leaves(nodes: Sequence[Any]) -> list[Any]:
    """The summaries of segments below these, oldest first."""
    return [leaf for node in nodes for leaf in (leaves(node.children) if node.children else [node])]


async def summarised(
    history: list[dict[str, Any]], provider: Callable[[], ScriptedProvider], **given: Any
) -> tuple[Snapshot, list[ChatRequest]]:
    """(the tree of a session of which nothing stays verbatim, what its provider was asked)."""
    settings = {"keep_recent": 0, "segment_tokens": SEGMENT, "prefetch": False, **given}
    made = await Managed(10**6, provider=provider, **settings).take(history)
    await made.view()
    await made.compacted()
    seen = await snapshot(made.manager)
    await made.manager.close()
    return seen, made.provider.requests


@given(rows=histories(), more=histories(8))
@slow_ok
def test_appending_rows_never_changes_a_closed_segment(rows, more):
    """Rule 13: the segments of a history are a prefix of those of any longer one, with the same keys."""

    async def segments(history: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
        seen, _ = await summarised(history, ScriptedProvider)
        return [(leaf.key, leaf.first, leaf.last) for leaf in leaves(seen.nodes) if not leaf.rest]

    async def run() -> None:
        short, long = await segments(rows), await segments([*rows, *more])
        # Where a compaction would free nothing, none runs, and there are fewer to compare.
        common = min(len(short), len(long))
        assert long[:common] == short[:common]

    asyncio.run(run())


@given(rows=histories())
@slow_ok
def test_every_rendered_row_of_a_segment_is_shown_to_the_summariser(rows):
    """Rule 12: rows are shown whole, or named as shortened with their size; hook rows are not shown."""

    async def run() -> None:
        parts = itertools.count(1)

        def provider() -> ScriptedProvider:
            return ScriptedProvider(then=lambda _: f"Goal: part {next(parts)}.", context_window=200_000)

        seen, requests = await summarised(rows, provider, max_concurrency=1, redact=False)
        asked = [request for request in requests if not str(request.messages[0].content).startswith("You merge")]
        # Segments that say the same have one key, and are asked for once.
        segments: dict[str, Any] = {}
        for leaf in leaves(seen.nodes):
            segments.setdefault(leaf.key, leaf)
        for leaf, request in zip(segments.values(), asked, strict=True):
            shown = transcript(request)
            told = seen.messages[leaf.first - 1 : leaf.last]
            assert [header for header, _ in shown] == [
                f"#{number} {row.role}{f' {row.name}' if row.name else ''}" for number, row in enumerate(told, 1)
            ]
            for (_, said), whole in zip(shown, told, strict=True):
                if said != whole.text:
                    is_large = len(whole.text.encode()) > 10 * 4 * SEGMENT
                    assert is_large or whole.role == "tool" or "result of" in whole.text
                    assert said[:10] == whole.text[:10]
                    assert len(whole.text.encode()) > 100
                    assert re.search(r"\d+ characters left out", said)
        assert not any(row.text == "hooked" for row in seen.messages)

    asyncio.run(run())
