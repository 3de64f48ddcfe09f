"""Time outs that do not count time in which the process was stopped or its event loop blocked."""

from __future__ import annotations

import asyncio
from collections.abc import Set
from typing import Any

_STEP = 0.1
"""Seconds after which a wait looks whether its time is up."""
_LEAST = 1e-6
"""Seconds below which a time out is over: a clock may be too coarse to count them."""


class AwakeClock:
    """The event loop's time without the seconds in which the loop did not run.

    A time out that is counted with it is not used up while nobody could take the answer. The clock looks only while
    somebody waits; all other time counts.
    """

    def __init__(self) -> None:
        self._waiting = 0
        self._seen = 0.0
        self._lost = 0.0

    def time(self) -> float:
        """Seconds, from any start."""
        now = asyncio.get_running_loop().time()
        if self._waiting and now - self._seen > 2 * _STEP:
            self._lost += now - self._seen - _STEP
        self._seen = now
        return now - self._lost

    async def wait(self, work: Set[asyncio.Future[Any]], until: float) -> None:
        """Wait for the first of these futures, until this time of the clock. Cancels nothing."""
        left = until - self.time()
        self._waiting += 1
        try:
            while left > _LEAST:
                done, _ = await asyncio.wait(work, timeout=min(left, _STEP))
                left = 0.0 if done else until - self.time()
        finally:
            self.time()
            self._waiting -= 1


async def wait_awake(work: Set[asyncio.Future[Any]], seconds: float) -> None:
    """Wait for the first of these futures, at most so many seconds in which the event loop runs."""
    clock = AwakeClock()
    await clock.wait(work, clock.time() + seconds)
