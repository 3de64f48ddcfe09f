"""A circuit breaker for one provider: after five failures in a row no calls, then one probe at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 600.0
"""Seconds without calls: the first pause, doubling with every failed probe up to the longest."""


class Open(Exception):
    """No call may be made now; `retry_in_s` says when one may."""

    def __init__(self, retry_in_s: float) -> None:
        super().__init__(f"no calls for another {retry_in_s:.0f} s after repeated failures")
        self.retry_in_s = retry_in_s


class Breaker:
    """Counts a provider's failed calls in a row and says whether the next call may be made.

    While calls fail but the breaker is still closed, one call at a time is made: what five calls tell need not be
    asked by eight.
    """

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self._clock = clock
        self._failures = 0
        self._pause = 0.0
        self._until: float | None = None
        self._turn = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """True while no call may be made, or only a probe."""
        return self._until is not None

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until the next call may be made; None while the breaker is closed."""
        return None if self._until is None else max(0.0, self._until - self._clock())

    async def enter(self) -> bool:
        """Wait for a turn to call; True when the turn must be given back by `leave`.

        Raises:
            Open: no call may be made now.
        """
        self._check()
        if not self._failures and not self.is_open:
            return False
        # A probe is under way, or the provider has just failed: wait how that ends.
        await self._turn.acquire()
        try:
            self._check()
        except Open:
            self._turn.release()
            raise
        return True

    def leave(self, turn: bool) -> None:
        """Give back what `enter` returned."""
        if turn:
            self._turn.release()

    def _check(self) -> None:
        left = self.retry_in_s
        if left:
            raise Open(left)

    def succeeded(self) -> None:
        """The provider has answered."""
        if self.is_open:
            logger.info("provider %s answers again; summaries go on", self.name)
        self._failures, self._pause, self._until = 0, 0.0, None

    def failed(self, *, permanent: bool = False) -> None:
        """A call has failed; `permanent` opens the breaker at once."""
        self._failures += 1
        if not (self.is_open or permanent or self._failures >= FAILURES):
            return
        if self.is_open and self.retry_in_s:
            return  # a call that was under way when the breaker opened is no probe
        self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self._until = self._clock() + self._pause
        # What no retry mends is told by whoever asked, once and with its cause.
        logger.log(
            logging.INFO if permanent else logging.WARNING,
            "provider %s failed %d times in a row; no summaries for %.0f s, digests meanwhile",
            self.name,
            self._failures,
            self._pause,
        )

    def answered_elsewhere(self) -> None:
        """The host's own request was answered by this provider: the next call is a probe, whatever the pause."""
        if self.is_open:
            self._until = self._clock()
