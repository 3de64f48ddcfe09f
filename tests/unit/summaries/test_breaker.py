"""A provider that fails time after time is left alone, and tried again."""

from __future__ import annotations

import asyncio

import pytest

from context_summarize.summaries.failures import Breaker
from tests.support.recorder import Clock


def opened() -> tuple[Breaker, Clock]:
    clock = Clock()
    made = Breaker(clock)
    for _ in range(5):
        made.failed()
    return made, clock


def test_five_failures_in_a_row_open_it_for_a_minute() -> None:
    """And not four, nor more that are not in a row."""
    made = Breaker(Clock())
    for _ in range(2):
        for _ in range(4):
            made.failed()
        assert made.retry_in_s is None
        made.reset()
    assert [made.failed() for _ in range(5)][-1]
    assert made.retry_in_s == 60


def test_the_pause_doubles_with_every_failed_probe_up_to_ten_minutes() -> None:
    """Until one succeeds: the next outage is new."""
    made, clock = opened()
    for pause in (60, 120, 240, 480, 600, 600):
        assert made.retry_in_s == pause
        clock.time += pause
        assert made.retry_in_s is None
        assert made.failed()
    made.reset()
    assert made.retry_in_s is None
    made.failed(permanent=True)
    assert made.retry_in_s == 60


@pytest.mark.parametrize("success", [True, False])
async def test_one_probe_at_a_time_and_the_others_wait_for_its_outcome(success: bool) -> None:
    """When it succeeds they may call; when it fails none may."""
    made, clock = opened()
    clock.time += 60
    found: list[float | None] = []

    async def other() -> None:
        async with made.turn():
            found.append(made.retry_in_s)

    async with made.turn():
        others = [asyncio.create_task(other()) for _ in range(2)]
        await asyncio.sleep(0)
        assert found == []
        if success:
            made.reset()
        else:
            made.failed()
    await asyncio.gather(*others)
    assert found == [None if success else 120] * 2
