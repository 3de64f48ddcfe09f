"""Rules 1 to 7, 10, 12 and 13 over random histories of every shape, through the whole manager."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Sequence
from typing import Any

from amplifier_core.message_models import ChatRequest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.properties.rules import check_fits, check_opening, check_order, check_shape, check_tiles
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.gated import Shortening
from tests.support.recorder import Recorder
from tests.support.snapshot import snapshot
from tests.support.transcripts import transcript

slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False}


@given(
    rows=histories(),
    budget=st.sampled_from([200, 400, 800, 2_000, 8_000]),
    keep=st.sampled_from([0, 2, 10]),
    factory=st.booleans(),
    every=st.sampled_from([1, 1, 3]),
)
@slow_ok
def test_every_view_of_every_history_keeps_the_rules(
    rows: list[dict[str, Any]], budget: int, keep: int, factory: bool, every: int
) -> None:
    """Rules 1 to 7: history whole, pairs whole, host's shape, repeatable, prefix-stable, in order, within budget."""

    async def run() -> None:
        recorder = Recorder()
        provider = Shortening()
        manager = SummarizingContextManager(recorder, keep_recent=keep, **SMALL)

        async def prompt() -> str:
            return "You are a helpful agent."

        if factory:
            await manager.set_system_prompt_factory(prompt)
        before: list[dict[str, Any]] = []
        compactions = served = 0
        fired: list[int] = []
        for at, row in enumerate(rows):
            given_row = copy.deepcopy(row)
            await manager.add_message(given_row)
            given_row.clear()
            if at % every:
                continue
            view = await manager.get_messages_for_request(budget, provider)
            made = recorder.count("context:compaction")
            check_shape(view)
            check_tiles(view)
            check_order(view, rows[: at + 1])
            check_opening(view, rows[: at + 1], made)
            if made > compactions:
                fired.append(served)
            if sum(1 for when in fired if served - when < 10) < 2:
                check_fits(view, budget)  # else a floor, which may fire twice in ten requests
            served += 1
            assert recorder.count("context:pre_compact") == recorder.count("context:post_compact") >= made
            if made == compactions:
                assert view[: len(before)] == before
            calls = provider.calls
            again = await manager.get_messages_for_request(budget, provider)
            assert again == view
            assert provider.calls == calls
            before, compactions = copy.deepcopy(again), recorder.count("context:compaction")
            assert compactions == made
            for shown in view:
                shown["content"] = "spoilt"
        assert await manager.get_messages() == rows
        await manager.close()

    asyncio.run(run())


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
