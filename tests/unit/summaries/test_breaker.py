"""A provider that fails time after time is left alone, and tried again."""

from __future__ import annotations

import asyncio

import pytest

from context_summarize.summaries.failures import Breaker
from tests.support.recorder import Clock


def test_five_failures_in_a_row_begin_a_pause_that_doubles_up_to_ten_minutes():
    """Four do not, nor more that are not in a row. After a success the next outage is new."""
    clock = Clock()
    made = Breaker(clock)
    for _ in range(4):
        assert not made.failed()
    made.reset()
    assert [made.failed() for _ in range(5)] == [False, False, False, False, True]
    for pause in (60, 120, 240, 480, 600, 600):
        assert made.retry_in_s == pause
        clock.time += pause
        assert made.retry_in_s is None
        assert made.failed()
    made.reset()
    assert made.retry_in_s is None
    made.failed(permanent=True)
    assert made.retry_in_s == 60


@pytest.mark.parametrize(("succeeds", "left"), [(True, None), (False, 120)])
async def test_one_probe_at_a_time_and_the_others_wait_for_its_outcome(succeeds, left):
    """When it succeeds they may call; when it fails none may."""
    clock, found = Clock(), list[float | None]()
    made = Breaker(clock)
    made.failed(permanent=True)
    clock.time += 60

    async def other() -> None:
        async with made.turn():
            found.append(made.retry_in_s)

    async with made.turn():
        others = [asyncio.create_task(other()) for _ in range(2)]
        await asyncio.sleep(0)
        assert found == []
        if succeeds:
            made.reset()
        else:
            made.failed()
    await asyncio.gather(*others)
    assert found == [left] * 2
