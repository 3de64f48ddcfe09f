"""Remembers what a compaction was weighed for last: while nothing has changed it is not weighed again."""

from __future__ import annotations

from collections.abc import Callable

from context_summarize.core.plan import Reason

Weight = tuple[object, ...]
"""What a compaction depends on."""


class Weighing:
    """Says whether a compaction is to be weighed."""

    def __init__(self) -> None:
        self._weighed: Weight | None = None
        self._late_at: int | None = None
        """The registry's version when summaries were late: with news of them a compaction is weighed again."""

    def due(self, weight: Weight, version: int, reason: Callable[[], Reason | None]) -> Reason | None:
        """Why a compaction is to be weighed; None if it is not due, or if nothing has changed since the last time."""
        if self._weighed == weight and self._late_at in (None, version):
            return None
        found = reason()
        if found is None:
            self.done(weight)
        return found

    def done(self, weight: Weight, late_at: int | None = None) -> None:
        """A compaction has been weighed; `late_at` is the registry's version if it waits for late summaries."""
        self._weighed, self._late_at = weight, late_at

    def forget(self) -> None:
        """The next request weighs a compaction whatever has been before."""
        self._weighed = None
