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

    A call takes one, and gives it back when its answer is used. The answers to pieces of a large input are held: they
    give theirs back when the whole summary is made. So in any 300 requests at most
    CAPACITY + 300 * PER_REQUEST + PER_SUMMARY * summaries calls are wasted: 54, and two for each summary. A circuit
    breaker alone does not bound them, because one good answer among many bad ones closes it.

    Args:
        requests: how many requests have been served so far.
    """

    def __init__(self, requests: Callable[[], int]) -> None:
        self._requests = requests
        self._seen = requests()
        self._left = CAPACITY
        self._under_way = 0
        self._held: dict[str, float] = {}
        """Calls for pieces by the key of their summary, the oldest key first."""

    def _add(self, calls: float) -> None:
        # Calls under way and held ones may give theirs back: with them the bucket is never more than full. What is
        # added beyond that pays for the pieces that have been held longest: they give nothing back any more.
        beyond = self._left + calls + self._under_way + sum(self._held.values()) - CAPACITY
        for key in list(self._held):
            paid = min(self._held[key], max(0.0, beyond))
            self._held[key] -= paid
            beyond -= paid
            if not self._held[key]:
                del self._held[key]
        self._left = min(CAPACITY - self._under_way - sum(self._held.values()), self._left + calls)

    @property
    def left(self) -> float:
        """Calls that may be wasted now, 0 or more."""
        served = self._requests()
        if served != self._seen:
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

    def end(self, *, used: bool, piece_of: str | None = None) -> None:
        """A call has ended, and its answer is used or not.

        Args:
            piece_of: the key of the summary that a used answer is a piece of.
        """
        self._under_way -= 1
        if used and piece_of is not None:
            self._held[piece_of] = self._held.get(piece_of, 0.0) + 1
        elif used:
            self._add(1)

    def stored(self, key: str, pieces: int = 0) -> None:
        """A summary was made, of the answers to this many pieces."""
        held = self._held.pop(key, 0.0)
        self._add(PER_SUMMARY + min(held, pieces))

    def lost(self, key: str) -> None:
        """The answers to pieces for this key came to nothing."""
        self._held.pop(key, None)
