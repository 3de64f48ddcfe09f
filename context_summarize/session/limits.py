"""What one request has to keep to, and how often a view that cannot fit may be compacted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from context_summarize.summaries.job import Target

_WINDOW = 10
_MOST = 2
"""A floor that cannot shrink fires at most two boundaries in ten requests."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one request has to keep to."""

    budget: int
    """Tokens, as the provider counts."""
    room: int
    """The same in our own tokens."""
    system_tokens: int
    factory: bool
    """Stored system rows are hidden behind the factory's prompt."""
    target: Target | None
    """Who writes summaries; None = nobody, digests only."""
    correct: Callable[[int], int]
    """Our tokens → the provider's."""


class CompactionThrottle:
    """Holds back boundaries of a view that cannot fit: at most two in ten requests, whatever the host does between."""

    def __init__(self) -> None:
        self._requests = 0
        self._made_at: deque[int] = deque(maxlen=_MOST)

    def served(self) -> None:
        """One request has been served."""
        self._requests += 1

    def fired(self) -> None:
        """A boundary has been made."""
        self._made_at.append(self._requests)

    def may_fire(self) -> bool:
        """True while fewer than two boundaries were made within the last ten requests."""
        return sum(1 for at in self._made_at if self._requests - at < _WINDOW) < _MOST
