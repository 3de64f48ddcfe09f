"""Plans and cuts as pure functions: what a compaction summarises, how it fits, and what is taken from a store."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.config import Config
from context_summarize.core.cut import Cut, Shortening, from_data, to_data
from context_summarize.core.draft import Plan, PlanInput, Reason
from context_summarize.core.log import Log
from context_summarize.core.nodes import Length, Node, Summary, estimated
from context_summarize.core.parts import Ends, Forced, parts_of
from context_summarize.core.plan import ends_for, plan
from context_summarize.core.view import View, nodes_of
from context_summarize.core.view import view as view_of
from context_summarize.messages.reading import analyse
from context_summarize.session.request_limits import own_limits
from context_summarize.testing import JsonRow, broken_pairs
from tests.support import inside
from tests.support.rows import calls, result, tool_session, user

CONFIG = Config(keep_recent=4, compact_threshold=0.5, shorten_tool_results=None, notes_share=0)


def log_of(rows: list[JsonRow]) -> Log:
    return inside.log_of(rows, lambda text: len(text) // 4)


def summary(node: Node) -> Summary:
    return Summary(node.key, node.level, f"Part {node.first_group} to {node.end_group}.", 8, 64)


def shown(log: Log, cut: Cut) -> View:
    return view_of(log, cut, summary)


def planned(log: Log, budget: int, reason: Reason = "threshold", cut: Cut | None = None, **more: Any) -> Plan:
    limits = own_limits(replace(CONFIG, **more.pop("settings", {})), budget, 0)
    cut = cut or Cut()
    cut = replace(cut, ends=ends_for(cut, limits, more.pop("segment", 64)))
    text_of = more.pop("text_of", summary)
    given_ = PlanInput(log=log, cut=cut, shown=shown(log, cut), limits=limits, text_of=text_of)
    return plan(given_, reason, **more)


def test_the_oldest_parts_are_summarised_until_the_goal_is_reached_and_no_further():
    log = log_of(tool_session(30))
    made = planned(log, 4_000)
    assert made.tokens_after <= own_limits(CONFIG, 4_000, 0).target_room
    ends = [leaf.end_group for leaf in parts_of(log, made.cut.ends).leaves]
    before = [end for end in ends if end < made.cut.groups][-1]
    assert shown(log, replace(made.cut, groups=before)).tokens > 0.15 * 4_000


@pytest.mark.parametrize(("budget", "level"), [(2_000, 1), (160, 3), (40, 5)])
def test_a_view_fits_by_one_step_after_another(budget, level):
    """Where it cannot fit, one line stands in place of all summaries."""
    log = log_of(tool_session(30))
    made = planned(log, budget, "must_fit")
    assert (made.fits, made.level) == (level < 5, level)
    rows = shown(log, made.cut).rows(None)
    assert broken_pairs(rows) == []
    assert made.cut.is_bare is (level == 5)


def test_where_rows_are_cut_to_fit_they_fill_half_of_the_room():
    log = log_of([*tool_session(2), user("word " * 9_000)])
    assert planned(log, 2_000, "must_fit").tokens_after > 1_000


@pytest.mark.parametrize(("words", "is_cut"), [(12, False), (22, True)])
def test_a_row_of_some_twenty_tokens_is_never_cut(words, is_cut):
    log = log_of([*tool_session(2), user("word " * words)])
    assert bool(shown(log, planned(log, 40, "must_fit").cut).shortened) is is_cut


def test_however_many_segments_there_are_their_summaries_take_at_most_a_quarter_more_than_their_share():
    limits = own_limits(CONFIG, 100_000, 0)
    [length] = ends_for(Cut(), limits, None).lengths
    digits, most = tuple[Node, ...](), 0
    for at in range(200):
        digits = length.grown(digits, Node(f"k{at}", 0, at, at + 1, length.summary_tokens), "")
        most = max(most, estimated(length.capped(digits, "")))
    assert 1.1 < most / (limits.share * limits.base) <= 1.25


@pytest.mark.parametrize(("base", "is_kept"), [(75_000, True), (55_000, False)])
def test_a_much_smaller_base_ends_the_growth_by_the_earlier_one(base, is_kept):
    ends = ends_for(Cut(), own_limits(CONFIG, 100_000, 0), 512)
    assert (ends_for(Cut(groups=5, ends=ends), own_limits(CONFIG, base, 0), 512) == ends) is is_kept


def test_a_part_that_ends_early_is_followed_by_parts_that_begin_there():
    """With its focus; what was closed before stays as it was."""
    log = log_of(tool_session(40))
    made = planned(log, 10_000, "manual", focus="the orders", segment=512)
    [forced] = made.cut.ends.forced
    assert (forced.end, forced.focus) == (made.cut.groups, "the orders")
    earlier = [*parts_of(log, made.cut.ends).leaves]
    for row in tool_session(60, start=50):
        log.add(analyse(row))
    parts = parts_of(log, made.cut.ends)
    parts.take_in()
    assert parts.leaves[: len(earlier)] == earlier
    assert parts.leaves[len(earlier)].first_group == forced.end
    assert nodes_of(log, made.cut)[-1].focus == "the orders"


def test_long_results_are_cut_but_not_pinned_ones():
    made = calls(("a", "read", {}), ("b", "read", {}))
    rows = [user("go"), made, result("a", "long " * 400), result("b", "long " * 400), *tool_session(8)]
    log = log_of(rows)
    for pins, cut in (((), True), ((1,), False)):
        plan_ = planned(log, 2_000, "manual", Cut(pins=pins), settings={"shorten_tool_results": 100})
        whole = [entry for entry in shown(log, plan_.cut).entries if "long " * 400 in str(entry.row)]
        assert bool(whole) is not cut


COUNTS = st.integers(0, 9)
SHORTENINGS = st.lists(st.builds(Shortening, COUNTS, COUNTS, COUNTS, st.booleans()), max_size=3).map(tuple)
LENGTHS = st.lists(st.integers(1, 9), unique=True, max_size=2).map(
    lambda starts: tuple(Length(start, 64 * (start + 1), 2, 100) for start in [0, *sorted(starts)])
)
FORCED = st.lists(st.tuples(COUNTS, st.none() | st.text(max_size=5)), unique_by=lambda part: part[0], max_size=3).map(
    lambda parts: tuple(Forced(at, at + 1, focus) for at, focus in sorted(parts, key=lambda part: part[0]) if at < 9)
)
CUTS = st.builds(
    Cut, groups=st.just(9), rows=COUNTS, keep_recent=COUNTS, ends=st.builds(Ends, LENGTHS, FORCED),
    shortened=SHORTENINGS, is_bare=st.booleans(),
    thread_room=COUNTS, pins=st.tuples(COUNTS), pinned=st.tuples(COUNTS, COUNTS),
    fallbacks=st.tuples(st.text(max_size=5)), changed_at=COUNTS, unsent_at=COUNTS,
)  # fmt: skip


@given(CUTS)
def test_a_cut_comes_back_from_a_store_as_it_was(cut):
    data = json.loads(json.dumps(to_data(cut)))
    assert from_data(data, 9, 10) == cut
    assert from_data(data, 9, 8) is None


WHOLE = Cut(groups=9, rows=9, ends=Ends((Length(0, 64, 2, 100),), (Forced(2, 4),)))
DAMAGED: list[dict[str, Any]] = [
    {"groups": "many"}, {"groups": -1}, {"groups": 11}, {"rows": 10}, {"keep_recent": None}, {"pinned": [10]},
    {"pins": [-1]}, {"fallbacks": [1]}, {"shortened": [[1, 2]]}, {"other": 1},
    {"ends": {"lengths": [], "forced": []}},
    {"ends": to_data(replace(WHOLE, ends=Ends((Length(1, 64, 2, 100),))))["ends"]},
    {"ends": to_data(replace(WHOLE, ends=Ends((Length(0, 0, 2, 100),))))["ends"]},
    {"ends": to_data(replace(WHOLE, ends=Ends((Length(0, 64, 1, 100),))))["ends"]},
    {"ends": to_data(replace(WHOLE, ends=Ends(WHOLE.ends.lengths, (Forced(4, 2),))))["ends"]},
    {"ends": to_data(replace(WHOLE, ends=Ends(WHOLE.ends.lengths, (Forced(4, 12),))))["ends"]},
    {"ends": to_data(replace(WHOLE, ends=Ends(WHOLE.ends.lengths, (Forced(4, 6), Forced(5, 7)))))["ends"]},
]  # fmt: skip


def test_rows_that_came_behind_a_cut_may_be_gone():
    later = replace(WHOLE, changed_at=12, unsent_at=15)
    assert from_data(to_data(later), 10, 9) == replace(WHOLE, changed_at=10, unsent_at=10)


@pytest.mark.parametrize("damage", [None, [], *DAMAGED], ids=repr)
def test_what_is_no_cut_of_this_log_is_none(damage):
    data = {**to_data(WHOLE), **damage} if isinstance(damage, dict) else damage
    assert from_data(data, 9, 10) is None
