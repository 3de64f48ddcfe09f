"""The harness: when requests are made, and what is measured of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from benchmarks.peers import Contestant, Ours, Terms
from benchmarks.prices import MODELS, dollars
from benchmarks.run import play
from benchmarks.scores import breaks, faults, waiting
from benchmarks.sessions import Session, called, plant, recorded
from benchmarks.summarisers import Call, Down, Keeping, seconds_of
from benchmarks.tokens import Row, count, measure

TALK: tuple[Row, ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How are you?"},
    {"role": "assistant", "content": "I am well."},
    *called(1, "look", {"at": "sky"}, "It is blue."),
)


def talk(rows: tuple[Row, ...] = TALK) -> Session:
    return Session(name="talk", rows=rows, budget=1_000)


class Whole(Contestant):
    """A contestant that shows everything; `fails` and `asks` say at which requests it does so."""

    fails: ClassVar[set[int]] = set()
    asks: ClassVar[set[int]] = set()

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self.rows: list[Row] = []
        self.requests = 0

    async def add(self, row: Row) -> None:
        self.rows.append(row)

    async def view(self) -> list[Row]:
        self.requests += 1
        if self.requests in self.asks:
            await self._terms.summariser.ask("A long text. " * 20, "", None)
        if self.requests in self.fails:
            raise RuntimeError("no view")
        return list(self.rows)


def test_a_request_is_made_before_each_assistant_row_and_at_the_end() -> None:
    seen = []
    result = play(Whole, talk(), look=lambda fed, view: seen.append((fed, len(view))))
    assert seen == [(2, 2), (3, 3), (5, 5)]
    assert [one.fed for one in result.requests] == [2, 3, 5]
    assert result.view == TALK


def test_the_beginning_that_a_view_shares_with_the_last_is_cached_and_the_rest_is_paid_for_as_new() -> None:
    result = play(Whole, talk())
    sizes = [measure(row, count) for row in TALK]
    first, second, last = result.requests
    assert (first.tokens, first.cached) == (sum(sizes[:2]), 0)
    assert (second.tokens, second.cached) == (sum(sizes[:3]), sum(sizes[:2]))
    assert (last.tokens, last.cached) == (sum(sizes), sum(sizes[:3]))
    assert breaks(result) == 0
    sol = replace(MODELS["sol"], long=last.tokens - 1)
    paid = [0.1 * one.cached + 2.5 * (one.tokens - one.cached) for one in result.requests]
    sent = [(one.tokens, one.cached) for one in result.requests]
    assert sol.of_requests(sent) == pytest.approx((paid[0] + paid[1] + 2 * paid[2]) / 1e6)
    assert sol.of_calls(20, 3, longest=20) == pytest.approx(70e-6)
    assert replace(sol, long=19).of_calls(20, 3, longest=20) == pytest.approx((2 * 40 + 1.5 * 30) / 1e6)
    refused = replace(result, requests=(), calls=(Call(20, 3), Call(40, 0, refused=True)))
    assert dollars(refused)["dollars_sol"] == pytest.approx(70e-6)


@pytest.mark.parametrize("tokens", [50_000, 400_000])
def test_the_prices_of_haiku_are_those_of_genai_prices(tokens: int) -> None:
    """Half of a request is cached, be it short or long; a call for a summary is not."""
    genai_prices = pytest.importorskip("genai_prices")

    def listed(**usage: int) -> float:
        asked = {"provider_id": "anthropic", "genai_request_timestamp": datetime(2026, 11, 23, tzinfo=UTC)}
        return float(genai_prices.calc_price(genai_prices.Usage(**usage), "claude-haiku-5-5", **asked).total_price)

    half, ours = tokens // 2, MODELS["haiku"]
    sent = listed(input_tokens=tokens, cache_read_tokens=half, cache_write_tokens=half)
    assert ours.of_requests([(tokens, half)]) == pytest.approx(sent)
    assert ours.of_calls(tokens, 900, tokens) == pytest.approx(listed(input_tokens=tokens, output_tokens=900))


def test_waiting_is_the_time_until_the_rows_are_there_in_virtual_seconds() -> None:
    result = play(type("Asking", (Whole,), {"asks": {2}}), talk())
    call = result.calls[0]
    assert [one.waited for one in result.requests] == pytest.approx([0, seconds_of(call.read, call.wrote), 0])
    assert waiting(result) == pytest.approx(result.requests[1].waited / sum(one.latency for one in result.requests))


def test_what_a_contestant_raises_is_a_lost_request_and_the_session_goes_on() -> None:
    result = play(type("Failing", (Whole,), {"fails": {1}}), talk())
    assert [one.lost for one in result.requests] == ["RuntimeError: no view", "", ""]
    assert faults(result)["lost"] == 1


def test_a_result_without_its_call_and_a_view_above_the_budget_are_faults() -> None:
    class Orphan(Whole):
        async def view(self) -> list[Row]:
            return [row for row in self.rows if not row.get("tool_calls")]

    result = play(Orphan, Session(name="talk", rows=TALK, budget=10))
    assert [one.broken for one in result.requests] == [0, 0, 1]
    assert faults(result) == {"lost": 0, "over_budget": 3, "broken": 1, "refused": 0}


def test_an_adapter_that_loses_something_is_refused() -> None:
    with pytest.raises(ValueError, match="without loss"):
        play(type("Losing", (Whole,), {"convert": lambda self, rows: []}), talk())


@pytest.mark.parametrize("summariser", [Keeping, Down])
def test_ours_breaks_nothing_with_any_summariser(summariser: type[Keeping]) -> None:
    rows, facts = plant(recorded()[:200], 20)
    result = play(Ours, Session(name="small", rows=rows, facts=facts, budget=8_000), summariser)
    assert faults(result) == {"lost": 0, "over_budget": 0, "broken": 0, "refused": 0}
    assert len(result.calls) > 0
    assert result.requests[-1].tokens < result.tokens / 2
