"""A provider that fails time after time is left alone; and how many calls may be lost under any provider."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from context_summarize.config import Config
from context_summarize.errors import SummaryUnavailable
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.failures import Breaker
from context_summarize.summaries.jobs import Job, Target
from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Clock
from tests.support.services import services

ANSWER = "Goal: one. State: done."


def opened(*, failures: int = 5) -> tuple[Breaker, Clock]:
    clock = Clock()
    made = Breaker(clock)
    for _ in range(failures):
        made.failed()
    return made, clock


def test_five_failures_in_a_row_open_it_for_a_minute() -> None:
    """And not four, nor more that are not in a row."""
    made, _ = opened(failures=4)
    assert made.retry_in_s is None
    made.succeeded()
    for _ in range(4):
        made.failed()
    assert made.retry_in_s is None
    assert made.failed()
    assert made.retry_in_s == 60


def test_the_pause_doubles_with_every_failed_probe_up_to_ten_minutes() -> None:
    """Until one succeeds: the next outage is new."""
    made, clock = opened()
    pauses = []
    for _ in range(6):
        pauses.append(made.retry_in_s)
        clock.time += made.retry_in_s or 0
        assert made.retry_in_s is None
        assert made.failed()
    assert pauses == [60, 120, 240, 480, 600, 600]
    made.succeeded()
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
            made.succeeded()
        else:
            made.failed()
    await asyncio.gather(*others)
    assert found == [None if success else 120] * 2


async def test_calls_that_bring_nothing_are_bounded_by_the_requests_that_are_served() -> None:
    """30 at once, one for every ten requests; a breaker alone does not bound them, because a good answer closes it."""
    clock, totals, lost, job = Clock(), Statistics(), [0], Job("k", 0, "#1 user\n" + "Please find it. " * 50, 800, 100)
    provider = ScriptedProvider(["", "", ANSWER] * 100, name="p")
    summarizer = Summarizer(services(Config(), len, clock=clock, sleep=clock.sleep, totals=totals))
    made = 0
    for totals.requests in (0, 9, 10, 300, 600):
        for _ in range(100):
            clock.time += 3_600  # time alone holds nothing back
            with contextlib.suppress(SummaryUnavailable):
                await summarizer.make(job, Target(provider, "p"))
                made += 1
        assert summarizer.is_paused(Target(provider, "p"))
        lost.append(provider.calls - made)
    assert lost == [0, 30, 30, 31, 60, 90]
