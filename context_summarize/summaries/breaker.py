"""A circuit breaker for one provider: five failures in a row stop the calls for a time; then one probe at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 600.0
"""Seconds without calls. The first pause doubles with every failed probe, up to the longest."""


class Open(Exception):
    """No call is allowed now; `retry_in_s` says when one is, if that depends on time alone."""

    def __init__(self, retry_in_s: float | None, why: str = "") -> None:
        super().__init__(why or f"no calls for another {retry_in_s:.0f} s after repeated failures")
        self.retry_in_s = retry_in_s


class Breaker:
    """Counts a provider's failed calls in a row, and decides whether the next call is allowed.

    While calls fail and the breaker is still closed, only one call runs at a time, so that no more than five calls are
    needed to open it.

    Args:
        is_careful: True while calls are made one at a time for another reason.
    """

    def __init__(self, name: str, clock: Callable[[], float], is_careful: Callable[[], bool] = lambda: False) -> None:
        self.name = name
        self._clock = clock
        self._is_careful = is_careful
        self._failures = 0
        self._pause = 0.0
        self._until: float | None = None
        self._turn = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """True while no call is allowed, or only a probe."""
        return self._until is not None

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until the next call is allowed; None while the breaker is closed."""
        return None if self._until is None else max(0.0, self._until - self._clock())

    async def enter(self) -> bool:
        """Wait for permission to call. The caller passes the result to `leave`.

        Raises:
            Open: no call is allowed now.
        """
        self._check()
        if not self._failures and not self.is_open and not self._is_careful():
            return False
        # A probe is under way, or the provider has just failed: wait for that call to end.
        await self._turn.acquire()
        try:
            self._check()
        except Open:
            self._turn.release()
            raise
        return True

    def leave(self, turn: bool) -> None:
        """End the call; `turn` is the result of `enter`."""
        if turn:
            self._turn.release()

    def _check(self) -> None:
        left = self.retry_in_s
        if left:
            raise Open(left)

    def succeeded(self) -> None:
        """The provider has answered."""
        if self.is_open:
            logger.info("provider %s answers again; summaries continue", self.name)
        self._failures, self._pause, self._until = 0, 0.0, None

    def failed(self, *, permanent: bool = False) -> None:
        """A call has failed; `permanent` opens the breaker at once."""
        self._failures += 1
        if not (self.is_open or permanent or self._failures >= FAILURES):
            return
        if self.is_open and self.retry_in_s:
            return  # a call that began before the breaker opened is not a probe
        self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self._until = self._clock() + self._pause
        # If a retry cannot help, the caller logs the error with its cause, once.
        logger.log(
            logging.INFO if permanent else logging.WARNING,
            "provider %s failed %d times in a row; no calls for %.0f s, fallback summaries meanwhile",
            self.name,
            self._failures,
            self._pause,
        )

    def answered_elsewhere(self) -> None:
        """This provider has answered a request of the host itself: the next call is a probe, and the pause ends."""
        if self.is_open:
            self._until = self._clock()
