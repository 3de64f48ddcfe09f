"""`benchmarks/field` on small sessions, with this module and the plain baseline: no peer is needed."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from benchmarks.field import cell as cells
from benchmarks.field import model, scenarios, views
from benchmarks.field.contestants import Entry, own
from benchmarks.field.result import Prices, Result
from benchmarks.peers import KeepLast, Ours, Row, Terms, text_of

SMALL = scenarios.Scenario(
    name="small", title="a small one", rows=lambda: scenarios.recorded()[:300], facts=30, budget=8_000
)
OURS, PLAIN = Entry("ours", Ours, "ours"), Entry("KeepLast", KeepLast, "plain")


def play(
    entry: Entry = OURS, scenario: scenarios.Scenario = SMALL, seed: int = 0, traits: model.Traits | None = None
) -> Result:
    """One cell."""
    return cells.play(entry, scenario, seed, traits or model.Traits(), Prices())


@pytest.fixture(scope="module")
def ours() -> Result:
    """This module in the small session."""
    return play()


@pytest.fixture(scope="module")
def plain() -> Result:
    """The plain baseline in the small session."""
    return play(PLAIN)


def test_this_module_keeps_more_than_the_newest_rows_do(ours: Result, plain: Result) -> None:
    """The control: the measures tell a contestant that summarises from one that forgets."""
    assert ours.facts_end > 0.7 > 0.3 > plain.facts_end
    assert ours.facts_equal > plain.facts_equal
    assert ours.calls > 5
    assert plain.calls == plain.price_summaries == plain.waited == 0
    assert ours.price > plain.price > 0
    assert 0.8 < ours.stable < 1
    assert ours.boundaries > 2


def test_nothing_breaks_in_this_module(ours: Result) -> None:
    """The promises, counted view by view."""
    broken = (ours.lost_turns, ours.over_budget, ours.broken_pairs, ours.not_user_first, ours.refused)
    assert broken == (0, 0, 0, 0, 0)


def test_a_cell_is_the_same_again(ours: Result) -> None:
    """Everything but CPU, memory and real time follows from the seed."""
    free = ("cpu_mean", "cpu_p50", "cpu_p99", "cpu_growth", "memory", "seconds")
    first, second = ({key: value for key, value in asdict(one).items() if key not in free} for one in (ours, play()))
    assert first == second
    assert play(seed=1).series != ours.series


def test_work_in_the_background_is_not_waited_for() -> None:
    """Without it, every boundary is waited for, and the waiting is counted."""
    waited = play(own("no prefetch", {"prefetch_threshold": None}))
    assert waited.waited > 0
    assert waited.waited_worst >= model.Traits().start_seconds
    assert len(waited.waits) > 2
    assert play().waited < waited.waited


def test_a_restart_costs_no_call_and_no_fact() -> None:
    """What the store kept is found again."""
    result = play(scenario=replace(SMALL, restart=0.6))
    assert result.calls_after_restart == 0
    assert result.facts_after_restart == 1.0


def test_models_that_take_turns_are_served_within_their_windows() -> None:
    """A view is held against the budget of the model that gets it."""
    result = play(scenario=replace(SMALL, other_budget=40_000, turns_per_model=20))
    assert result.over_budget == 0
    assert max(size for _, size in result.series) > SMALL.budget


class Careless(KeepLast):
    """Shows results without their calls, too much, no user's row first, and fails in the end."""

    title = "careless"

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._seen: list[Row] = []

    async def add(self, row: Row) -> None:
        self._seen.append(row)

    async def view(self) -> list[Row]:
        if len(self._seen) > 200:
            raise RuntimeError("no more")
        lonely = {"role": "tool", "tool_call_id": "none", "name": "x", "content": "alone"}
        return [lonely, {"role": "user", "content": "x " * 20_000}]


def test_what_a_contestant_does_wrong_is_counted() -> None:
    """Every measure of what breaks has something to count here."""
    result = play(Entry("careless", Careless, "peer"))
    served = result.requests - result.lost_turns
    assert result.errors == {"RuntimeError": result.lost_turns}
    assert result.lost_turns > 20
    assert result.over_budget == result.broken_pairs == result.not_user_first == served > 50


def test_a_view_has_in_common_what_stands_where_it_stood() -> None:
    """Whole rows first, then the text up to where it differs."""
    seen = views.Views(lambda text: len(text.split()), frozenset())
    a, b, c = ({"role": "user", "content": text} for text in ("one two", "three four five", "six"))
    assert seen.next([a, b]) == (5 + 6, 0, 0)
    assert seen.next([a, b, c]) == (5 + 6 + 4, 11, 2)
    assert seen.next([a, {**b, "content": "three four 5"}]) == (11, 5 + 2, 1)
    assert seen.next([b, a])[1:] == (0, 0)


def test_at_equal_size_the_oldest_verbatim_rows_go_first_and_then_the_summaries() -> None:
    """The system prompt stays."""
    facts = [f"FACT-{at:04d}-0A0A" for at in range(10)]
    said = [{"role": "user", "content": f"some {fact}"} for fact in facts[:3]]
    summary = {"role": "system", "content": f"summary {facts[9]}"}
    seen = views.Views(lambda text: 7, frozenset(text_of(row) for row in said))
    seen.next([summary, *said])
    assert seen.facts_within(40) == {*facts[:3], facts[9]}
    assert seen.facts_within(30) == {*facts[1:3], facts[9]}
    assert seen.facts_within(10) == {facts[9]}
    assert seen.facts_within(9) == set()


def test_a_lossy_adapter_is_not_measured() -> None:
    """Its losses would count as the peer's."""

    class Lossy(KeepLast):
        def convert(self, rows: Any) -> list[Row]:
            return list(rows)[1:]

    with pytest.raises(ValueError, match="without loss"):
        play(Entry("lossy", Lossy, "peer"))
