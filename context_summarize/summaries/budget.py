"""The allowance for calls that bring no usable summary: it holds whatever a provider does, good answers included."""

from __future__ import annotations

from collections.abc import Callable

CAPACITY = 24.0
"""Wasted calls that the allowance holds when it is full."""
PER_REQUEST = 0.1
"""What each served request adds: 30 in 300 requests."""
PER_SUMMARY = 2.0
"""What each stored summary adds."""


class CallBudget:
    """A token bucket in calls.

    A call takes one, and gives it back when its answer is used: that to a piece of a large input when the whole summary
    is made. So in any 300 requests at most CAPACITY + 300 * PER_REQUEST + PER_SUMMARY * summaries calls are wasted: 54,
    two for each summary, and those under way. A circuit breaker alone does not bound them, because one good answer
    among many bad ones closes it.

    Args:
        requests: how many requests have been served so far.
    """

    def __init__(self, requests: Callable[[], int]) -> None:
        self._requests = requests
        self._seen = requests()
        self._left = CAPACITY
        self._under_way = 0

    def _add(self, calls: float) -> None:
        self._left = min(CAPACITY, self._left + calls)

    @property
    def left(self) -> float:
        """Calls that may be wasted now, 0 or more."""
        served = self._requests()
        self._add(PER_REQUEST * max(0, served - self._seen))
        self._seen = served
        return self._left

    @property
    def is_spent(self) -> bool:
        """True while no call is allowed."""
        return self.left < 1 and not self._under_way

    @property
    def is_low(self) -> bool:
        """True while calls have to be made one at a time."""
        return self.left < CAPACITY / 3

    def take(self) -> bool:
        """Take one call; False where none is left."""
        if self.left < 1:
            return False
        self._left -= 1
        self._under_way += 1
        return True

    def end(self, *, used: bool) -> None:
        """A call has ended, and its answer is used or not."""
        self._under_way -= 1
        self._add(used)

    def stored(self, pieces: int = 0) -> None:
        """A summary was made, of the answers to this many pieces."""
        self._add(PER_SUMMARY + pieces)
