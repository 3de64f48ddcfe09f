"""A circuit breaker: a provider that fails time after time is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable

FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 600.0
"""Seconds without calls. Each further pause is twice as long."""


class Breaker:
    """Five failures of a provider in a row stop its calls for a time; then one call probes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures, self._pause, self._until = 0, 0.0, 0.0

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until a call is allowed; None while one is."""
        return left if (left := self._until - self._clock()) > 0 else None

    def begin(self) -> bool:
        """A call begins. True if it is a probe, after a pause: the next pause begins with it, unless it succeeds."""
        if self._pause:
            self._open()
        return self._pause > 0

    def succeeded(self) -> None:
        """The provider has answered."""
        self._failures, self._pause, self._until = 0, 0.0, 0.0

    def failed(self, *, permanent: bool = False) -> bool:
        """A call has failed; `permanent` opens the breaker at once. True if it has opened now."""
        self._failures += 1
        opens = not self._pause and (permanent or self._failures >= FAILURES)
        if opens:
            self._open()
        return opens

    def _open(self) -> None:
        self._pause = min(LONGEST_PAUSE, 2 * self._pause or FIRST_PAUSE)
        self._until = self._clock() + self._pause

    def end_pause(self) -> None:
        """The provider has answered somebody else: the next call is a probe."""
        self._until = 0.0
