"""Inspections of recordings of every shape, compared with the recording itself and with a replay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import Config
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.inspected import Inspection
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.player import Setup, replay
from context_summarize.replay.session_files import read_session
from context_summarize.session.snapshot import SummaryNode
from context_summarize.testing import assistant, call, calls, hook, result, tool_session, user
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.cli import EXAMPLE
from tests.support.effort import full

COUNTER = TokenCounter()
LATE: dict[str, Any] = {"compact_threshold": 0.7, "target_usage": 0.3}
"""Compactions that summarise several segments at once."""


def inspected(rows: list[JsonRow], window: int = 6_000, max_output: int = 1_000, **settings: object) -> Inspection:
    return asyncio.run(inspect_rows(rows, window=window, max_output=max_output, config=Config.from_mapping(settings)))


def counted(rows: list[JsonRow]) -> int:
    asyncio.run(COUNTER.load())
    return sum(measure(row, COUNTER.count) for row in rows)


def check(found: Inspection, rows: list[JsonRow]) -> None:
    """What holds for every inspection."""
    use = found.use
    assert found.rows == len(rows)
    assert found.tokens == counted(rows)
    assert use.system + use.pins + use.summaries + use.verbatim + use.free == use.budget
    assert use.budget + use.reserved == use.window
    assert min(use.system, use.pins, use.summaries, use.verbatim) >= 0
    check_ranges(found)
    for node in found.tree:
        check_node(node)


def check_ranges(found: Inspection) -> None:
    """Segments and summaries follow each other without a gap; what is summarised next begins where they end."""
    spans = [(line.first, line.last) for line in found.segments]
    assert [first for first, _ in spans] == [1, *(last + 1 for _, last in spans)][: len(spans)]
    assert all(first <= last for first, last in spans)
    assert (spans[-1][1] if spans else 0) + found.unsegmented == found.messages
    assert [line.index for line in found.segments] == list(range(len(spans)))
    nodes = [(node.first, node.last) for node in found.tree]
    assert [first for first, _ in nodes] == [1, *(last + 1 for _, last in nodes)][: len(nodes)]
    end = nodes[-1][1] if nodes else 0
    assert [line.last <= end for line in found.segments] == [line.folded for line in found.segments]
    if found.next.first is not None:
        assert found.next.last is not None
        assert end < found.next.first <= found.next.last <= found.messages


def check_node(node: SummaryNode) -> None:
    """A merged summary covers its children and nothing else."""
    if node.children:
        assert (node.first, node.last) == (node.children[0].first, node.children[-1].last)
        assert all(a.last + 1 == b.first for a, b in pairwise(node.children))
        assert node.level == 1 + max(child.level for child in node.children)
    for child in node.children:
        check_node(child)


ROWS = st.lists(
    st.one_of(
        st.integers(1, 400).map(lambda size: [user("say " * size)]),
        st.integers(1, 400).map(lambda size: [assistant("tell " * size)]),
        st.integers(1, 900).map(lambda size: [call("c", "look", at=1), result("c", "found " * size)]),
        st.just([calls(("a", "look", {}), ("b", "look", {})), hook("time passes"), result("b"), result("a")]),
        st.just([{"role": "system", "content": "Be brief. " * 20}]),
        st.just([{"role": "user", "content": "keep", "metadata": {"critical": True}}]),
        st.just([call("late", "look")]),
    ),
    min_size=1,
    max_size=25,
).map(lambda runs: [row for run in runs for row in run])


@settings(max_examples=full(40, 10), suppress_health_check=[HealthCheck.too_slow])
@given(ROWS, st.sampled_from([1_500, 3_000, 9_000]))
def test_the_parts_of_an_inspection_add_up(rows, window):
    """Open calls, hook rows, system rows anywhere, and windows that are too small for what must stand."""
    check(inspected(rows, window=window, max_output=200, safety_margin=0, keep_recent=4), rows)


def test_the_example_is_cut_summarised_and_priced_as_a_replay_does():
    """Without work in the background a replay makes the same compactions and takes the same tokens."""
    rows = read_session(EXAMPLE)
    found = inspected(rows, window=40_000, max_output=4_000)

    async def replayed():
        await COUNTER.load()
        config = replace(Config(), prefetch_threshold=None)
        return await replay(rows, Setup(provider=OfflineProvider(COUNTER.count), name="offline", config=config))

    told = asyncio.run(replayed())

    check(found, rows)
    assert told.snapshot is not None
    assert tuple(map(still, found.tree)) == tuple(map(still, told.snapshot.nodes))
    assert (found.requests, found.boundaries) == (told.requests + 1, len(told.boundaries))
    assert (found.calls, found.input_tokens) == (told.provider_calls, told.provider_input_tokens)
    assert found.output_tokens == told.provider_output_tokens
    assert found.tokens == told.history_tokens
    assert {line.role for line in found.largest} <= {"tool", "system"}
    assert [line.tokens for line in found.largest] == sorted((line.tokens for line in found.largest), reverse=True)


def test_the_same_recording_gives_the_same_inspection():
    """Nothing depends on how fast this machine is."""
    rows = tool_session(60, size=800)

    assert replaced(inspected(rows)) == replaced(inspected(rows))


def still(node: SummaryNode) -> SummaryNode:
    """Without the moment at which it was made."""
    made = node.summary and replace(node.summary, created=0.0)
    return replace(node, summary=made, children=tuple(map(still, node.children)))


def replaced(found: Inspection) -> Inspection:
    """Without the moments at which summaries were made."""
    return replace(found, tree=tuple(map(still, found.tree)))


def test_the_next_compaction_summarises_what_was_said():
    """The next compaction of a session summarises the predicted messages."""
    rows = tool_session(80, size=800)
    at = next(at for at in range(40, 320, 4) if 0.6 < used_share(inspected(rows[:at], **LATE)) < 0.7)
    before = inspected(rows[:at], **LATE)

    later_ones = (inspected(rows[:end], **LATE) for end in range(at + 4, at + 80, 4))
    later = next(found for found in later_ones if found.boundaries > before.boundaries)

    summarised = later.tree[-1].last
    assert before.next.first == (before.tree[-1].last + 1 if before.tree else 1)
    assert before.next.last is not None
    assert before.next.calls >= before.next.segments > 0
    assert before.next.last <= summarised


def used_share(found: Inspection) -> float:
    return 1 - found.use.free / found.use.budget


def test_the_calls_of_the_next_compaction_are_priced_as_they_turn_out():
    """The estimate for a first compaction is within a tenth of the real figures."""
    rows = tool_session(80, size=800)
    ends = range(8, 320, 4)
    at, made = next((a, b) for a, b in pairwise(ends) if inspected(rows[:b], **LATE).boundaries == 1)
    foretold, told = inspected(rows[:at], **LATE).next, inspected(rows[:made], **LATE)

    per_call = foretold.input_tokens / foretold.calls
    assert told.calls > 0
    assert abs(told.input_tokens / told.calls - per_call) < 0.1 * per_call


def test_largest_rows_are_named_by_row_message_and_tool():
    """System rows have no number in frames; a result is named by its call, nearest and earlier, else by itself."""
    rows = [
        {"role": "system", "content": "rule " * 90},
        user("x"),
        call("1", "look", at=1),
        result("1", "found " * 300, name="other"),
        {"role": "tool", "tool_call_id": "lost", "content": "lost " * 200, "name": "orphan"},
        {"role": "tool", "tool_call_id": "gone", "content": "gone " * 60},
    ]

    found = inspected(rows).largest

    told = [(line.row, line.message, line.role, line.tool) for line in found]
    assert told == [
        (4, 3, "tool", "look"),
        (5, 4, "tool", "orphan"),
        (1, None, "system", None),
        (6, 5, "tool", None),
        (3, 2, "assistant", None),
    ]


def test_nothing_is_kept_or_written(tmp_path):
    """Settings of a session that name files are for sessions."""
    rows = tool_session(40, size=800)
    told = inspected(rows, cache=str(tmp_path / "kept"), persistence={"path": str(tmp_path / "rows.jsonl")})

    assert told.boundaries > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("strategy", ["summarize", "truncate"])
def test_fallback_summaries_take_nothing_from_a_provider(strategy):
    """Neither those that were made nor those to come."""
    found = inspected(tool_session(40, size=800), compaction_strategy=strategy)

    costs = (found.calls, found.input_tokens, found.next.calls, found.next.input_tokens)
    assert (costs == (0, 0, 0, 0)) == (strategy == "truncate")
    assert all(node.summary and node.summary.fallback for node in found.tree) == (strategy == "truncate")
