"""How many calls are made at once, for providers that work side by side and for those that queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from context_summarize.summaries.slots import Slots
from tests.support.recorder import Clock


def played(slots: Slots, clock: Clock, seconds: Callable[[int], float], waves: int) -> list[int]:
    """Waves of as many calls as are allowed, answered together after `seconds(calls)`: the limits after each wave."""
    limits = []
    for _ in range(waves):
        calls = [slots.begin() for _ in range(slots.limit)]
        clock.time += seconds(len(calls))
        for call in calls:
            slots.end(call, answered=True)
        # Where a session has one summary to make, one call is made.
        call = slots.begin()
        clock.time += seconds(1)
        slots.end(call, answered=True)
        limits.append(slots.limit)
    return limits


def test_a_provider_that_works_side_by_side_keeps_all_slots() -> None:
    """Four at once take as long as one."""
    clock = Clock()
    assert set(played(Slots(4, clock), clock, lambda calls: 5.0, 20)) == {4}


def test_a_provider_that_queues_is_asked_once_at_a_time() -> None:
    """Four at once take four times as long: nothing is gained. Now and then a second one is tried."""
    clock = Clock()
    limits = played(Slots(4, clock), clock, lambda calls: 5.0 * calls, 40)
    assert limits[4] <= 2
    assert sum(limits[8:]) / len(limits[8:]) < 1.5


def test_slots_come_back_when_the_provider_has_become_faster() -> None:
    """Another server behind the same name."""
    clock = Clock()
    slots = Slots(4, clock)
    played(slots, clock, lambda calls: 5.0 * calls, 10)
    assert max(played(slots, clock, lambda calls: 5.0, 60)) == 4


def test_a_timeout_halves_the_slots() -> None:
    """Calls that run into the deadline together have hindered each other."""
    clock = Clock()
    slots = Slots(4, clock)
    call = slots.begin()
    clock.time += 120
    slots.end(call, late=True)
    assert slots.limit == 2


def test_fast_answers_are_not_measured() -> None:
    """Half a second is nothing to be spared."""
    clock = Clock()
    assert set(played(Slots(4, clock), clock, lambda calls: 0.1 * calls, 20)) == {4}


def test_calls_that_begin_in_one_moment_may_end_in_any_order() -> None:
    """Each is taken out for itself, though both have the same times."""
    clock = Clock()
    slots = Slots(4, clock)
    first, second = slots.begin(), slots.begin()
    slots.end(second, answered=True)
    clock.time += 5
    slots.end(first, answered=True)
    last = slots.begin()
    clock.time += 5
    slots.end(last, answered=True)
    assert slots.limit == 4


async def test_who_is_cancelled_while_waiting_takes_no_slot() -> None:
    """Before its turn, and in the very moment of it."""
    slots, entered = Slots(1, Clock()), []

    async def enter(name: str) -> None:
        async with slots.slot():
            entered.append(name)
            await asyncio.sleep(0)

    first, second, third = (asyncio.create_task(enter(name)) for name in "abc")
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, third)
    with pytest.raises(asyncio.CancelledError):
        await second
    assert entered == ["a", "c"]
    holder = slots.slot()
    await holder.__aenter__()
    waiting = asyncio.create_task(enter("d"))
    await asyncio.sleep(0)
    await holder.__aexit__(None, None, None)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await enter("e")
    assert entered == ["a", "c", "e"]
