"""The bounds on calls in vain: when a breaker opens, what closes it again, and how many calls may be lost."""

from __future__ import annotations

import asyncio

import pytest

from context_summarize.summaries.breaker import (
    APART,
    AT_ONCE,
    FAILURES,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    WINDOW,
    Breaker,
    LostCalls,
    Open,
)
from tests.support.recorder import Clock


def breaker() -> tuple[Breaker, Clock]:
    clock = Clock()
    return Breaker("p", clock), clock


async def fail(made: Breaker, *, permanent: bool = False) -> None:
    """One call that fails."""
    async with made.turn():
        made.failed(permanent=permanent)


async def opened() -> tuple[Breaker, Clock]:
    made, clock = breaker()
    for _ in range(FAILURES):
        await fail(made)
    return made, clock


async def test_five_failures_in_a_row_open_it_for_a_minute() -> None:
    """And not four; what it says then is when to ask again."""
    made, _ = breaker()
    for _ in range(FAILURES - 1):
        await fail(made)
    assert made.retry_in_s is None
    await fail(made)
    with pytest.raises(Open, match="no calls for another 60 s") as caught:
        await fail(made)
    assert caught.value.retry_in_s == made.retry_in_s == FIRST_PAUSE == 60


async def test_a_success_in_between_begins_the_count_anew() -> None:
    """In a row is what counts."""
    made, _ = breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            await fail(made)
        async with made.turn():
            made.succeeded()
    assert made.retry_in_s is None


async def test_what_no_retry_mends_opens_it_at_once() -> None:
    """Auth, quota, unknown model."""
    made, _ = breaker()
    await fail(made, permanent=True)
    assert made.retry_in_s == FIRST_PAUSE


async def test_the_pause_doubles_with_every_failed_probe_up_to_ten_minutes() -> None:
    """60, 120, 240, 480, 600, 600 seconds."""
    made, clock = await opened()
    pauses = []
    for _ in range(6):
        pauses.append(made.retry_in_s)
        clock.time += made.retry_in_s or 0
        await fail(made)
    assert pauses == [60, 120, 240, 480, LONGEST_PAUSE, LONGEST_PAUSE]


@pytest.mark.parametrize("success", [True, False])
async def test_one_probe_at_a_time_and_the_others_share_its_outcome(success: bool) -> None:
    """While the probe is under way the others wait; when it fails they do not call, when it succeeds they do."""
    made, clock = await opened()
    clock.time += FIRST_PAUSE
    called: list[int] = []

    async def other(at: int) -> None:
        async with made.turn():
            called.append(at)

    async with made.turn():
        others = [asyncio.create_task(other(at)) for at in range(3)]
        await asyncio.sleep(0)
        assert called == []
        if success:
            made.succeeded()
        else:
            made.failed()
    outcomes = await asyncio.gather(*others, return_exceptions=True)
    assert called == ([0, 1, 2] if success else [])
    assert [type(outcome) for outcome in outcomes] == [type(None) if success else Open] * 3


async def test_a_call_that_was_under_way_when_it_opened_is_no_probe() -> None:
    """Its failure does not double the pause."""
    made, _ = breaker()
    async with made.turn():
        for _ in range(FAILURES):
            await fail(made)
        made.failed()
    assert made.retry_in_s == FIRST_PAUSE


async def test_an_answer_to_the_host_ends_the_pause() -> None:
    """The provider's outage is over, however long the pause had grown; the next call is a probe."""
    made, _ = await opened()
    made.answered_elsewhere()
    await fail(made)
    assert made.retry_in_s == 2 * FIRST_PAUSE


async def test_an_open_one_refuses_at_once_even_while_a_probe_is_under_way() -> None:
    """A caller that would have to wait for its turn is told at once that there are no calls now."""
    made, clock = await opened()
    clock.time += FIRST_PAUSE
    async with made.turn():
        made.failed()
        with pytest.raises(Open, match="no calls for another 120 s"):
            await asyncio.wait_for(fail(made), 30)


async def test_a_success_resets_the_pause() -> None:
    """The next outage begins with a minute again."""
    made, clock = await opened()
    clock.time += FIRST_PAUSE
    async with made.turn():
        made.succeeded()
    await fail(made, permanent=True)
    assert made.retry_in_s == FIRST_PAUSE


class Served:
    """Requests served so far."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self) -> int:
        return self.requests


def lost(calls: LostCalls, most: int = 1_000) -> int:
    """Calls that can be lost now, one after the other."""
    for made in range(most):
        try:
            calls.take()
        except Open:
            assert calls.is_spent
            return made
    return most


def test_30_calls_may_be_lost_at_once_and_one_more_every_ten_requests() -> None:
    """60 in any 300 requests; a call is forgotten once 300 have been served after it. Time alone allows nothing."""
    served = Served()
    calls = LostCalls(served)
    made = [lost(calls)]
    for served.requests in range(1, 2 * WINDOW):
        made.append(lost(calls))
    assert made[:21] == [AT_ONCE, *([0] * (APART - 1) + [1]) * 2]
    assert max(sum(made[start : start + WINDOW]) for start in range(WINDOW)) <= 60
    assert sum(made[WINDOW:]) >= 30, "a recovery is seen"


def test_a_summary_makes_up_for_two_lost_calls_and_never_for_more_than_there_are() -> None:
    """Its own call is not lost; a thousand good ones buy no more than the bound."""
    calls = LostCalls(Served())
    for _ in range(1_000):
        calls.used(calls.take())
    assert lost(calls, AT_ONCE - 1) == AT_ONCE - 1
    calls.used(calls.take())
    assert lost(calls) == 3
