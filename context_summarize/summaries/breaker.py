"""A circuit breaker: a provider that fails time after time is left alone for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 600.0
"""Seconds without calls. Each further pause is twice as long."""


class Breaker:
    """Five failures of a provider in a row stop its calls for a time; then one call at a time probes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures, self._pause, self._until = 0, 0.0, 0.0
        self._probing = asyncio.Lock()

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until a call is allowed; None while one is."""
        return left if (left := self._until - self._clock()) > 0 else None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """A turn to call; True for a probe. After a pause the others wait for the probe: its outcome is theirs."""
        if not self._pause:
            yield False
            return
        async with self._probing:
            yield self._pause > 0

    def succeeded(self) -> None:
        """The provider has answered."""
        self._failures, self._pause, self._until = 0, 0.0, 0.0

    def failed(self, *, permanent: bool = False) -> bool:
        """A call has failed; `permanent` opens the breaker at once. True if it has opened now."""
        self._failures += 1
        if self.retry_in_s is not None or not (self._pause or permanent or self._failures >= FAILURES):
            return False  # a call that began before the breaker opened is no probe
        self._pause = min(LONGEST_PAUSE, 2 * self._pause or FIRST_PAUSE)
        self._until = self._clock() + self._pause
        return True

    def end_pause(self) -> None:
        """The provider has answered somebody else: the next call is a probe."""
        self._until = 0.0
