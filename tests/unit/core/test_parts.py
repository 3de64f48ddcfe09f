"""Groups, rendered text, derived sizes, the rule that ends parts, keys, and the tree of leaves."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.sessions import recorded
from context_summarize.core.nodes import (
    Length,
    Node,
    derive_fan,
    derive_summary_tokens,
    estimated,
    merge_node,
)
from context_summarize.core.parts import Ends, Parts, derive_segment_tokens, numbered_from
from context_summarize.messages.rows import JsonRow
from tests.support.inside import log_of, text_of
from tests.support.rows import assistant, call, calls, hook, result, user

BOTH = calls(("a", "bash", {}), ("b", "read", {"path": "x"}))
RESULTS = [{"type": "tool_result", "tool_use_id": call_id, "content": "found"} for call_id in ("a", "b")]
BETWEEN = [hook("n"), hook("u", "user"), hook("a", "assistant"), {"role": "system", "content": "s"}]
BARE = {"role": "function", "name": "f", "content": "x"}
GROUPS: dict[str, tuple[list[JsonRow], list[tuple[Any, ...]]]] = {
    "rows without calls": ([user("x"), assistant("y"), hook("z")], [(0, 1), (1, 2), (2, 3)]),
    "a call and its result": ([call("a"), result("a"), assistant("b")], [(0, 2, (1, "a")), (2, 3)]),
    "parallel calls, results in any order": (
        [BOTH, result("b"), result("a"), user("x")],
        [(0, 3, (1, "b"), (2, "a")), (3, 4)],
    ),
    "rows of hooks and the system between": ([call("a"), *BETWEEN, BARE, result("a")], [(0, 7, (6, "a"))]),
    "a result of a hook answers nothing": ([call("a"), {**result("a"), "metadata": {"source": "hook"}}], []),
    "a result after its call was abandoned": ([call("a"), user("x"), result("a")], [(0, 1), (1, 2), (2, 3)]),
    "a new call passes over an open one": (
        [call("a"), call("b"), result("b"), result("a")],
        [(0, 1), (1, 3, (2, "b")), (3, 4)],
    ),
    "results without a call, and second ones": (
        [result("z"), call("a"), result("a"), result("a")],
        [(0, 1), (1, 3, (2, "a")), (3, 4)],
    ),
    "ids that repeat belong to the nearest unanswered call": (
        [call("a"), result("a")] * 2,
        [(0, 2, (1, "a")), (2, 4, (3, "a"))],
    ),
    "a user row with results": (
        [BOTH, user([*RESULTS, {"type": "text", "text": "go on"}]), user("x")],
        [(0, 2, (1, "a"), (1, "b")), (2, 3)],
    ),
}
"""Rows, and of each group that is closed its first row, its end, and which row answers which call."""


@pytest.mark.parametrize(("rows", "groups"), GROUPS.values(), ids=GROUPS)
def test_a_group_is_the_smallest_run_that_is_never_split(rows, groups):
    """A closed group never changes."""
    assert groups == [
        (one.start, one.end, *((row, call.id) for row, answered in one.answers.items() for call in answered))
        for one in log_of(rows).groups
    ]


def test_a_segment_is_an_eighth_of_the_budget_and_a_summary_a_sixteenth_of_a_segment():
    """Segments are the nearest power of two, within 512 and 16,384; ties go down. Summaries are within 64 and 1,600."""
    powers = [2**n for n in range(9, 15)]
    for budget in [46_340, 46_342, *range(1, 300_000, 997)]:
        nearest = min(powers, key=lambda power: abs(math.log2(power) - math.log2(budget / 8)))
        assert derive_segment_tokens(budget) == nearest
    assert derive_segment_tokens(0) == derive_segment_tokens(-5) == 512
    assert [derive_summary_tokens(size) for size in (512, 8_192, 16_384, 65_536)] == [64, 512, 1_024, 1_600]


def test_a_row_is_searched_for_secrets_whole_and_once_before_it_is_cut():
    searched = list[int]()

    def redact(part: str) -> str:
        searched.append(len(part))
        return re.sub("z+", "", part)

    long = "first words " + "z" * 4_000_000 + "line\n" * 1_000 + "last words"
    text = text_of([call("c"), result("c", long)], segment=512, redact=redact).partition("[m2] tool bash\n")[2]

    assert searched.count(len(long)) == 1
    assert text.startswith("first words line\n")
    assert text.endswith("last words")
    assert len(text) < 2_000


def merged(children: tuple[Node, ...], template: str = "t", tokens: int = 100) -> Node:
    return merge_node(children, template_hash=template, summary_tokens=tokens)


def test_a_merge_stands_for_the_whole_run_one_level_up():
    """Half as long as what it joins, at most ten times a segment's summary; it takes its children's run."""
    leaves = tuple(Node(f"k{at}", 0, at, at + 1, 100, 512) for at in range(4))
    node = merged(leaves)
    assert (node.level, node.first_group, node.end_group, node.children) == (1, 0, 4, leaves)
    lengths = [merged(children).summary_tokens for children in (leaves[:2], leaves, leaves * 3, leaves * 9)]
    assert lengths == [100, 200, 600, 1_000]
    others = [merged(leaves, template="u"), merged(leaves, tokens=10), merged(leaves[::-1])]
    assert len({made.key for made in (node, *others)}) == 4
    assert merged((node, leaves[1])).level == 2


def test_what_a_summary_cites_from_around_its_part_is_cited_in_merges_and_views_too():
    """Around the parts stand: the request and the agent's last words before them, and the row behind."""
    asked = [user("Keep the table of limits in the page, please, and write a test. " * 3), assistant("I begin.")]
    log = log_of([*asked, *(assistant(f"step {at}") for at in range(8))])
    leaves = tuple(Node(f"k{at}", 0, at, at + 2, 100, 512) for at in (2, 4))
    merge, said = merged(leaves), "as [b1] asks, [m1]; then [b3]"

    shown = [numbered_from(log, leaf, said) for leaf in leaves]
    read = [numbered_from(log, leaf, said, merge) for leaf in leaves]

    assert shown == ["as [m1] asks, [m3]; then [m5]", "as [m1] asks, [m5]; then [m7]"]
    assert read == ["as [b1] asks, [m1]; then [m3]", "as [b1] asks, [m3]; then [b3]"]
    assert [numbered_from(log, merge, text) for text in read] == shown


def digits(leaves: int, most: int) -> list[int]:
    """The levels of a tree of so many leaves: a number's digits, from 1 to `most`."""
    length, nodes = Length(0, 1_600, most, 10**9), tuple[Node, ...]()
    for at in range(leaves):
        nodes = length.grown(nodes, Node(f"k{at}", 0, at, at + 1, 100), "t")
    assert [node.first_group for node in nodes] == [0, *(node.end_group for node in nodes)][: len(nodes)]
    return [node.level for node in nodes]


def test_leaves_are_the_digits_of_a_number():
    """Of k + 1 nodes of a level the oldest k become one of the next."""
    assert [digits(leaves, 3) for leaves in (1, 3, 4, 7, 10, 13)] == [
        [0], [0, 0, 0], [1, 0], [1, 1, 0], [1, 1, 1, 0], [2, 1, 0],
    ]  # fmt: skip


def test_nodes_beyond_their_room_merge_from_the_oldest_on():
    nodes = tuple(Node(f"k{at}", 0, at, at + 1, 100) for at in range(6))
    length = Length(0, 1_600, 9, 700)
    capped = length.capped(nodes, "t")
    assert estimated(capped) <= 700 < estimated(nodes)
    assert capped[1:] == nodes[7 - len(capped) :]
    assert capped == length.capped(capped, "t")
    assert len(replace(length, room=0).capped(nodes, "t")) == 1


def test_the_fan_is_the_largest_whose_two_levels_fit():
    def taken(most: int) -> float:
        return (most + 1) * (130 + min(10, (most + 1) / 2) * 100 + 30)

    for room in (0, 3_000, 10_000, 56_000):
        most = derive_fan(room, 100)
        assert most == 2 or taken(most - 1) <= room
        assert taken(most) > room


def keys(rows: list[JsonRow], segment_tokens: int) -> list[str]:
    log = log_of(rows)
    parts = Parts(log, Ends((Length(0, segment_tokens, 8, 10**6),)))
    parts.take_in()
    return [leaf.key for leaf in parts.leaves]


@pytest.mark.parametrize("row", [user("One more thing."), assistant("Let me see.")], ids=["user", "assistant"])
@pytest.mark.parametrize("at", [3, 41, 201])
def test_a_row_that_is_inserted_early_changes_the_keys_of_its_neighbours_alone(at, row):
    """In a recorded desk, whose parts end where a user's turn begins."""
    rows = recorded()
    for segment_tokens in (512, 4_096):
        before = keys(rows, segment_tokens)
        after = keys([*rows[:at], row, *rows[at:]], segment_tokens)
        assert 1 <= len({*before}.difference(after)) <= 2
        assert len(before) > 20
        assert before[-15:] == after[-15:]
