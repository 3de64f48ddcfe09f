"""Reminders that a request must show whole although a compaction has summarised them."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize.core.log import Log
from context_summarize.messages.reading import is_reminder
from context_summarize.messages.rows import LASTING, SHOWN, JsonRow
from context_summarize.messages.view_rows import view_row
from context_summarize.session.conversation import Conversation
from context_summarize.tokens.measure import Count, measure


class Retention:
    """Holds copies of the wanted reminders that the view does not show whole. Requests show them after the summaries.

    A copy stays until the next compaction, even if the host no longer wants it. So the earlier request is a prefix of
    the later one.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._compaction: tuple[Log, int] | None = None
        """The compaction whose summaries the rows follow: its log, and the number of compactions."""
        self.held: list[JsonRow] = []
        """The rows; requests get copies of them."""
        self.tokens = 0
        """Size of the rows that are held, uncorrected."""

    def update(self, chat: Conversation, wanted: Sequence[str]) -> bool:
        """Holds the wanted rows that the view does not show whole; returns True if the held rows have changed."""
        compaction = (chat.log, chat.view.compactions)
        held = [*self.held] if compaction == self._compaction else []
        whole = {entry.origin for entry in chat.rendering().entries} - chat.view.shortened.keys()
        for content in wanted:
            if any(row["content"] == content for row in held):
                continue
            index = _newest(chat.log, content)
            if index is None:  # requests show it although the history does not hold it
                held.append({"role": "user", "content": content, "metadata": {**SHOWN, **LASTING}})
            elif index not in whole:
                held += filter(None, [view_row(chat.log.rows[index])])
        has_changed = held != self.held
        self.held, self._compaction = held, compaction
        if has_changed:
            self.tokens = sum(measure(row, self._count) for row in held)
        return has_changed


def _newest(log: Log, content: str) -> int | None:
    """Returns the last row that is a reminder with this content; None without one."""
    for index in reversed(range(len(log))):
        raw = log.rows[index].raw
        if raw.get("content") == content and is_reminder(raw):
            return index
    return None
