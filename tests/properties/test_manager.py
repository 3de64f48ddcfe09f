"""Rules 1 to 7, 10, 12 and 13 over random histories of every shape, through the whole manager."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from amplifier_core.message_models import ChatRequest
from hypothesis import HealthCheck, given, settings

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.snapshot import snapshot
from tests.support.transcripts import transcript

slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False}


def leaves(nodes: Sequence[Any]) -> list[Any]:
    """The summaries of segments below these, oldest first."""
    return [leaf for node in nodes for leaf in (leaves(node.children) if node.children else [node])]


@given(rows=histories(), more=histories(8))
@slow_ok
def test_appending_rows_never_changes_a_closed_segment(rows: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    """Rule 13: the segments of a history are a prefix of those of any longer one, with the same keys."""

    async def segments(history: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
        manager = SummarizingContextManager(keep_recent=0, **SMALL)
        await manager.set_messages(history)
        await manager.get_messages_for_request(10**6)
        await manager.compact()
        await manager.get_messages_for_request(10**6)
        seen = await snapshot(manager)
        await manager.close()
        return [(leaf.key, leaf.first, leaf.last) for leaf in leaves(seen.nodes) if not leaf.rest]

    async def run() -> None:
        short, long = await segments(rows), await segments([*rows, *more])
        # Where a compaction would free nothing, none runs, and there are fewer to compare.
        common = min(len(short), len(long))
        assert long[:common] == short[:common]

    asyncio.run(run())


@given(rows=histories())
@slow_ok
def test_every_rendered_row_of_a_segment_is_shown_to_the_summariser(rows: list[dict[str, Any]]) -> None:
    """Rule 12: rows are shown whole, or named as shortened with their size; hook rows are not shown."""

    async def run() -> None:
        provider = ScriptedProvider(then=lambda request: f"Goal: part {provider.calls}.", context_window=200_000)
        manager = SummarizingContextManager(keep_recent=0, max_concurrency=1, redact=False, **SMALL)
        await manager.set_messages(rows)
        await manager.get_messages_for_request(10**6, provider)
        await manager.compact()
        await manager.get_messages_for_request(10**6, provider)
        seen = await snapshot(manager)
        await manager.close()
        asked = [request for request in provider.requests if not is_merge(request)]
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
                    is_large = len(whole.text.encode()) > 10 * 4 * SMALL["segment_tokens"]
                    assert is_large or whole.role == "tool" or "result of" in whole.text
                    assert said[:10] == whole.text[:10]
                    assert len(whole.text.encode()) > 100
                    assert re.search(r"\d+ characters left out", said)
        assert not any(row.text == "hooked" for row in seen.messages)

    asyncio.run(run())


def is_merge(request: ChatRequest) -> bool:
    """Whether summaries are to be merged, and not rows summarised."""
    return str(request.messages[0].content).startswith("You merge")
