"""Two bounds on calls in vain: a circuit breaker for each provider, and a counter of lost calls for the session."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from context_summarize.summaries.failures import InVain

logger = logging.getLogger(__name__)

FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 600.0
"""Seconds without calls. The first pause doubles with every failed probe, up to the longest."""
WINDOW = 300
"""Requests in which lost calls are counted: at most 60, and two for each summary."""
AT_ONCE = 30
"""Calls that may be lost one after the other; from then on one in so many requests, so that a recovery is seen."""
APART = 10
_PER_SUMMARY = 2


class Open(InVain):
    """No call is allowed now; `retry_in_s` says when one is, if that depends on time alone."""

    kind = "breaker_open"

    def __init__(self, retry_in_s: float | None, why: str = "") -> None:
        super().__init__(why or f"no calls for another {retry_in_s:.0f} s after repeated failures")
        self.retry_in_s = retry_in_s


class Breaker:
    """Five failures of a provider in a row stop its calls for a time; then one call at a time probes it."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._failures = 0
        self._pause = 0.0
        self._until: float | None = None
        self._turn = asyncio.Lock()

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until the next call is allowed; None while the breaker is closed."""
        return None if self._until is None else max(0.0, self._until - self._clock())

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One call. After a failure calls are made one at a time, so that no more than five are needed to open it.

        Raises:
            Open: no call is allowed now.
        """
        self._check()
        if not self._failures:
            yield
            return
        async with self._turn:
            self._check()
            yield

    def _check(self) -> None:
        if left := self.retry_in_s:
            raise Open(left)

    def succeeded(self) -> None:
        """The provider has answered."""
        if self._until is not None:
            logger.info("provider %s answers again; summaries continue", self._name)
        self._failures, self._pause, self._until = 0, 0.0, None

    def failed(self, *, permanent: bool = False) -> None:
        """A call has failed; `permanent` opens the breaker at once."""
        self._failures += 1
        is_probe = self._until is not None
        if self.retry_in_s or not (is_probe or permanent or self._failures >= FAILURES):
            return  # a call that began before the breaker opened is no probe
        self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self._until = self._clock() + self._pause
        # If a retry cannot help, the caller logs the error with its cause, once.
        told = "provider %s failed %d times in a row; no calls for %.0f s, fallback summaries meanwhile"
        level = logging.INFO if permanent else logging.WARNING
        logger.log(level, told, self._name, self._failures, self._pause)

    def answered_elsewhere(self) -> None:
        """This provider has answered a request of the host itself: the next call is a probe, and the pause ends."""
        if self._until is not None:
            self._until = self._clock()


class LostCalls:
    """Counts calls that bring no usable answer: a breaker does not bound them, because a good answer closes it.

    Args:
        requests: how many requests have been served so far.
    """

    def __init__(self, requests: Callable[[], int]) -> None:
        self._requests = requests
        self._made: deque[int] = deque()
        """For each call that is lost or under way, the requests that had been served when it was made."""

    @property
    def is_spent(self) -> bool:
        """True while no call is allowed."""
        while self._made and self._made[0] <= self._requests() - WINDOW:
            self._made.popleft()
        return len(self._made) >= AT_ONCE and self._requests() - self._made[-1] < APART

    def take(self) -> int:
        """Count a call; what `used` needs.

        Raises:
            Open: no call is allowed now.
        """
        if self.is_spent:
            raise Open(None, "no calls for now: too many brought no usable summary")
        self._made.append(self._requests())
        return self._made[-1]

    def used(self, call: int) -> None:
        """The answer of this call is a summary: it makes up for the two calls that were lost first."""
        if call in self._made:
            self._made.remove(call)
        for _ in range(min(_PER_SUMMARY, len(self._made))):
            self._made.popleft()
