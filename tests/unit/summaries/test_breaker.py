"""A provider that fails time after time is left alone; and how many calls may be lost under any provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError

from context_summarize.config import Config
from context_summarize.errors import SummaryUnavailable
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.failures import Breaker
from context_summarize.summaries.request import Job, Target
from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Clock
from tests.support.services import services

ANSWER = "Goal: one. State: done."
DOWN = ProviderUnavailableError("503")


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
    """When it succeeds none of them is a probe; when it fails none may call."""
    made, clock = opened()
    clock.time += 60
    found: list[tuple[bool, float | None]] = []

    async def other() -> None:
        async with made.turn() as is_probe:
            found.append((is_probe, made.retry_in_s))

    async with made.turn() as is_probe:
        assert is_probe
        others = [asyncio.create_task(other()) for _ in range(2)]
        await asyncio.sleep(0)
        assert found == []
        if success:
            made.succeeded()
        else:
            made.failed()
    await asyncio.gather(*others)
    assert found == [(False, None) if success else (True, 120)] * 2


class Session:
    """A summariser that is asked for one summary with each request, and as often as it is allowed at the first."""

    def __init__(self, answers: Callable[[int], Any], **settings: Any) -> None:
        self.clock, self.totals, self.lost, self.made = Clock(), Statistics(), list[int](), 0
        self._answers, self._asked = answers, 0
        self.provider = ScriptedProvider(then=self._answer, name="p")
        shared = services(Config(**settings), len, clock=self.clock, sleep=self.clock.sleep, totals=self.totals)
        self.summarizer = Summarizer(shared)

    def _answer(self, request: Any) -> Any:
        self._asked += 1
        answer = self._answers(self._asked)
        if answer != ANSWER:
            self.lost.append(self.totals.requests)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self) -> None:
        job = Job("k", 0, "#1 user\n" + "Please find it. " * 50, 800, 100)
        try:
            await self.summarizer.make(job, Target(self.provider, "p"))
            self.made += 1
        except SummaryUnavailable:
            pass

    async def serve(self, requests: int, each: int = 3) -> None:
        """So many requests, with an hour between two: time alone holds nothing back."""
        for _ in range(requests):
            self.totals.requests += 1
            self.clock.time += 3_600
            for _ in range(each):
                await self.ask()

    def most_lost(self) -> int:
        """Calls that were lost in the worst 300 requests."""
        return max(sum(start <= at < start + 300 for at in self.lost) for start in range(600))


@pytest.mark.parametrize(
    "answers",
    [
        lambda asked: DOWN,
        lambda asked: "",
        lambda asked: AuthenticationError("401"),
        lambda asked: ANSWER if asked % 3 == 0 else "",
        lambda asked: ANSWER if asked % 4 == 0 else DOWN,
        lambda asked: ANSWER if asked > 400 else "",
    ],
    ids=["down", "no summary", "no key", "one good in three", "good after retries", "good once"],
)
async def test_at_most_60_calls_are_lost_in_300_requests_under_any_provider(answers: Callable[[int], Any]) -> None:
    """30 at once, one for every ten requests; a breaker alone does not bound them, because a good answer closes it."""
    session = Session(answers)
    await session.serve(700)
    assert 30 <= session.most_lost() <= 60
    assert any(at >= 400 for at in session.lost), "a recovery is seen"
