"""Knows when the provider's prompt cache is cold: a request that is new to it anyway may as well be compacted."""

from __future__ import annotations

from collections.abc import Callable

from context_summarize.core.history import History
from context_summarize.session.conversation import Conversation

COLD_AFTER = 3_600
"""Seconds: no provider's prompt cache, where it is not asked for a longer life, outlives an hour without a request."""


class PromptCache:
    """Remembers the last request."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._served: tuple[float, History, int] | None = None
        """Seconds of the clock at the last request, its history and how many rows it had."""

    def served(self, chat: Conversation) -> None:
        """A request has been served."""
        self._served = (self._clock(), chat.history, len(chat.history))

    def is_cold(self, chat: Conversation) -> bool:
        """True if the pause since the last request was longer than the cache lives, and rows have been added."""
        if self._served is None:
            return False
        at, history, rows = self._served
        return self._clock() - at > COLD_AFTER and (history is not chat.history or len(chat.history) > rows)
