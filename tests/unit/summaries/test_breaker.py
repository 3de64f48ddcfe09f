"""The circuit breaker: when calls stop, when one is a probe, and what closes it again."""

from __future__ import annotations

import asyncio

import pytest

from context_summarize.summaries.breaker import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, Breaker, Open
from tests.support.recorder import Clock


def breaker() -> tuple[Breaker, Clock]:
    clock = Clock()
    return Breaker("p", clock), clock


async def fail(made: Breaker, *, permanent: bool = False) -> None:
    """One call that fails."""
    turn = await made.enter()
    made.failed(permanent=permanent)
    made.leave(turn)


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
    assert not made.is_open
    await fail(made)
    with pytest.raises(Open) as caught:
        await made.enter()
    assert caught.value.retry_in_s == made.retry_in_s == FIRST_PAUSE == 60


async def test_a_success_in_between_begins_the_count_anew() -> None:
    """In a row is what counts."""
    made, _ = breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            await fail(made)
        made.leave(await made.enter())
        made.succeeded()
    assert not made.is_open
    assert made.retry_in_s is None


async def test_what_no_retry_mends_opens_it_at_once() -> None:
    """Auth, quota, unknown model."""
    made, _ = breaker()
    await fail(made, permanent=True)
    assert made.is_open


async def test_the_pause_doubles_with_every_failed_probe_up_to_ten_minutes() -> None:
    """60, 120, 240, 480, 600, 600 seconds."""
    made, clock = await opened()
    pauses = []
    for _ in range(6):
        pauses.append(made.retry_in_s)
        clock.time += made.retry_in_s or 0
        await fail(made)
    assert pauses == [60, 120, 240, 480, LONGEST_PAUSE, LONGEST_PAUSE]


async def test_one_probe_at_a_time_and_the_others_share_its_outcome() -> None:
    """While the probe is under way the others wait; when it fails they do not call, when it succeeds they do."""
    for success in (False, True):
        made, clock = await opened()
        clock.time += FIRST_PAUSE
        turn = await made.enter()
        others = [asyncio.create_task(made.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in others)
        if success:
            made.succeeded()
        else:
            made.failed()
        made.leave(turn)
        for task in others:
            if success:
                made.leave(await task)
            else:
                with pytest.raises(Open):
                    await task
        assert made.is_open is not success


async def test_a_call_that_was_under_way_when_it_opened_is_no_probe() -> None:
    """Its failure does not double the pause."""
    made, _ = breaker()
    early = await made.enter()
    for _ in range(FAILURES):
        await fail(made)
    made.failed()
    made.leave(early)
    assert made.retry_in_s == FIRST_PAUSE


async def test_an_answer_to_the_host_ends_the_pause() -> None:
    """The provider's outage is over, however long the pause had grown; the next call is a probe."""
    made, _ = await opened()
    made.answered_elsewhere()
    assert await made.enter()
    made.failed()
    assert made.retry_in_s == 2 * FIRST_PAUSE


async def test_an_open_one_refuses_at_once_even_while_a_probe_is_under_way() -> None:
    """A caller that would have to wait for its turn is told at once that there are no calls now."""
    made, clock = await opened()
    clock.time += FIRST_PAUSE
    turn = await made.enter()
    made.failed()
    with pytest.raises(Open, match="no calls for another 120 s"):
        await asyncio.wait_for(made.enter(), 30)
    made.leave(turn)
    assert str(Open(None, "spent")) == "spent"


async def test_a_success_resets_the_pause() -> None:
    """The next outage begins with a minute again."""
    made, clock = await opened()
    clock.time += FIRST_PAUSE
    turn = await made.enter()
    made.succeeded()
    made.leave(turn)
    await fail(made, permanent=True)
    assert made.retry_in_s == FIRST_PAUSE
