"""The planner alone, without an event loop: what is summarised, merged, shortened, and how far it goes to fit."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.core.draft import PlanInput
from context_summarize.core.limits import Limits
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, View, next_run
from context_summarize.core.plan import Plan, Reason, next_plan, plan
from context_summarize.core.render import results
from context_summarize.core.segments import Cutting, Segments
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from tests.support.rows import assistant, call, result, user

NODE = 50
"""Tokens of the row of each summary."""
LIMITS: dict[str, Any] = {
    "room": 4_000,
    "keep_recent": 4,
    "threshold": 0.7,
    "target": 0.3,
    "share": 0.25,
    "fan_in": 3,
    "shorten_above": None,
}


def words(tokens: int, word: str = "abc") -> str:
    """A token is a word; words of four bytes make cutting and counting agree."""
    return " ".join([word] * tokens)


def talk(turns: int, tokens: int = 97) -> list[JsonRow]:
    """Turns of two rows, each of `tokens` words, which makes 100 tokens a row."""
    return [row for at in range(turns) for row in (user(words(tokens, f"u{at:02}")), assistant(words(tokens, "yes")))]


def looked_up(call_id: str, tokens: int) -> list[JsonRow]:
    return [call(call_id), result(call_id, words(tokens))]


def given(rows: list[JsonRow], view: View | None = None, **limits: Any) -> PlanInput:
    """A history whose summaries are all known."""
    log = Log(lambda text: len(text.split()))
    for row in rows:
        log.add(analyse(normalise(row)))
    segments = Segments(log, Cutting("segment", "merge", 380, 40), 0)
    segments.take_in()
    values = {**LIMITS, **limits}
    room = values.pop("room")
    values = {"system_tokens": 0, "view_room": room, "base": room, **values}
    return PlanInput(
        log=log, segments=segments, view=view or View(), limits=Limits(**values), size_of=lambda node: NODE
    )


def planned(rows: list[JsonRow], reason: Reason = "threshold", view: View | None = None, **limits: Any) -> Plan:
    return plan(given(rows, view, **limits), reason)


def test_the_oldest_segments_are_summarised_until_the_target_is_reached():
    """Not one more than that takes."""
    made = planned(talk(20), share=1.0)
    assert made.tokens_after <= 1_200 < made.tokens_before
    assert made.segments == len(made.view.nodes)
    assert planned(talk(20), share=1.0, target=(made.tokens_after + 1) / 4_000).view.frontier == made.view.frontier
    assert planned(talk(20), share=1.0, target=0.5).view.frontier < made.view.frontier
    assert (made.level, made.view.shortened, made.fits) == (1, {}, True)


@pytest.mark.parametrize("keep", [0, 1, 7, 33, 40])
def test_the_newest_rows_are_never_summarised(keep):
    """As many segments are as end before them, whatever the target."""
    made = planned(talk(20), keep_recent=keep, target=0.01, room=6_000)
    ends = [leaf.end_group for leaf in given(talk(20)).segments.leaves]  # type: ignore[union-attr]
    assert made.view.frontier == max([end for end in ends if end <= 40 - max(keep, 1)], default=0)
    assert made.view.frontier_row <= 40 - max(keep, 1)


def neighbours(*levels: str) -> list[Node]:
    """Written as their level and the number of their children."""
    child = Node("child", 0, 0, 1, 40)
    return [
        Node(str(at), int(text[0]), at, at + 1, 40, children=(child,) * int(text[1])) for at, text in enumerate(levels)
    ]


@pytest.mark.parametrize(
    ("levels", "joined"),
    [
        ([], []),
        (["00"], []),
        (["00", "00"], ["0", "1"]),
        (["00", "00", "00", "00"], ["0", "1", "2"]),
        (["13", "00", "00", "00"], ["1", "2", "3"]),
        (["13", "13", "13", "00", "00"], ["0", "1", "2"]),
        (["13", "13", "00", "00"], ["2", "3"]),
        (["13", "13", "00"], ["0", "1"]),
        (["12", "00"], ["child", "child", "1"]),
        (["13", "12", "00", "00"], ["child", "child", "2"]),
        (["23", "00"], []),
        (["23", "13", "00"], []),
        (["22", "13", "00"], ["child", "child", "1"]),
    ],
)
def test_the_oldest_complete_run_of_the_lowest_level_is_merged(levels, joined):
    """Without a complete one all of the lowest; a merge of fewer than three is taken apart, and grows."""
    assert [node.key for node in next_run(neighbours(*levels), 3)] == joined


def test_summaries_are_merged_until_a_tenth_of_their_share_is_free():
    """Also where there is nothing to summarise; the row of notes comes out of their share."""
    made = planned(talk(40), target=0.01, room=2_000)
    assert made.merged > 0
    assert len(made.view.nodes) * NODE <= 0.9 * 500
    before, rest = planned(talk(20), share=1.0).view, dict[str, Any](target=1.0, keep_recent=40)
    smaller = planned(talk(20), view=before, share=0.05, **rest)
    assert (smaller.segments, smaller.merged, smaller.view.frontier) == (0, 3, before.frontier)
    exactly = len(before.nodes) * NODE / 4_000
    assert planned(talk(20), view=before, share=exactly, **rest).merged == 0
    assert planned(talk(20), view=before, share=0.3, notes_room=1_100, **rest).merged > 0


def test_long_results_older_than_keep_recent_are_cut_to_a_quarter_of_the_limit():
    """Short ones are not, nor anything but a tool result; what is cut is not cut again."""
    found = [user(words(20)), *looked_up("a", 600), *looked_up("b", 90), *looked_up("c", 600), *talk(2, 20)]
    rows = [user(words(700)), *found]
    [size] = {entry.tokens for entry in results(given(rows).log, 0, 10) if entry.tokens > 200}
    assert not {3, 7} & set(planned(rows, shorten_above=size).view.shortened), "at the limit they are not"
    first = planned(rows, shorten_above=200)
    assert (first.view.shortened, first.view.nodes) == ({3: 50, 7: 50}, ())
    again = planned(rows, view=first.view, shorten_above=200)
    assert (again.view.shortened, again.freed) == (first.view.shortened, 0)


def test_a_long_first_user_message_is_pinned_at_a_tenth():
    """Once it is summarised; while it is verbatim it is whole. Where other rows are shortened, it stays so."""
    rows = [user(words(1_000)), *talk(20)]
    first = planned(rows)
    assert first.view.shortened == {0: 400}
    assert planned([user(words(1_000)), *talk(4)], keep_recent=99).view.shortened == {}
    assert planned([user(words(397)), *talk(20)]).view.shortened == {}, "a tenth is not long"
    smaller = planned(rows, view=first.view, room=2_500, keep_recent=40, threshold=1.0, target=1.0)
    assert smaller.view.shortened == {0: 250}, "in a smaller window it is cut again, though nothing is summarised"
    view = planned([user(words(3_000)), *talk(4, 20), user(words(2_000))], "must_fit", room=1_000, keep_recent=0).view
    assert view.frontier > 0
    assert view.shortened[0] <= 100


WRITTEN = [call("a", text=words(60)), result("a", words(3_000))]
LEVELS: dict[str, tuple[list[JsonRow], dict[str, Any], tuple[int, int, set[int]]]] = {
    "segments": (talk(20), {"room": 1_600}, (1, 36, set())),
    "what lies behind them": (talk(20), {"keep_recent": 6, "room": 900}, (2, 34, set())),
    "keep_recent is halved": (talk(20), {"keep_recent": 20, "room": 1_400}, (3, 30, set())),
    "down to the newest group": ([*talk(10), *looked_up("a", 100)], {"keep_recent": 8, "room": 330}, (3, 20, set())),
    "the one long row is shortened": ([user(words(20)), *talk(8), *WRITTEN], {"room": 600}, (4, 17, {18})),
    "so are arguments": ([*talk(8), call("a", text=words(3_000)), result("a", "ok")], {"room": 600}, (4, 16, {16})),
    "open calls are not summarised": (
        [*talk(10), call("a", text=words(400))],
        {"keep_recent": 0, "room": 300},
        (4, 20, {18, 20}),
    ),
    "one line for all summaries": (
        [*talk(20), user(words(40))],
        {"share": 10.0, "fan_in": 20, "room": 200},
        (5, 40, {40}),
    ),
}
"""Rows, limits, and of the plan its level, its first verbatim row, and the rows after the first that it shortens."""


@pytest.mark.parametrize("name", LEVELS)
def test_one_level_after_the_other_is_taken_until_the_view_fits(name):
    """No more than it takes; a tenth is left for the next row where rows are shortened."""
    rows, limits, expected = LEVELS[name]
    made = planned(rows, "must_fit", **limits)
    assert (made.level, made.view.frontier_row, set(made.view.shortened) - {0}) == expected
    assert made.fits
    assert made.view.is_bare is (made.level == 5)
    assert made.level != 4 or made.tokens_after <= 0.9 * limits["room"] + 24


def test_what_is_made_ahead_is_what_the_compaction_at_the_threshold_shows():
    """Rows that are still too new count as well."""
    now = given(talk(13), share=1.0)
    later = planned(talk(14), share=1.0)
    assert plan(now, "threshold").tokens_before < now.limits.threshold_room <= later.tokens_before
    assert next_plan(now).view.nodes == later.view.nodes
    assert next_plan(given(talk(13), share=1.0, keep_recent=99)).view.nodes == later.view.nodes


@pytest.mark.parametrize("less", [0, 1])
def test_the_row_of_notes_goes_first_where_the_view_does_not_fit(less):
    """And not where it fits exactly."""
    limits: dict[str, Any] = {"notes_room": 200, "share": 1.0}
    made = planned(talk(20), "manual", **limits)
    again = planned(talk(20), "manual", **limits, view_room=made.tokens_after - less)
    assert made.notes_room
    assert (again.notes_room == 0) is bool(less)
    assert (again.view.nodes, again.fits) == (made.view.nodes, True)
