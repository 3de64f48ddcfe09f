"""Reminders that a host wants whole in its next request, wherever the view has left them."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize.core.history import History
from context_summarize.messages.json_text import copy_json
from context_summarize.messages.reading import is_reminder
from context_summarize.messages.rows import JsonRow
from context_summarize.session.conversation import Conversation
from context_summarize.tokens.measure import Count, measure


class Retention:
    """Holds copies of the wanted rows that the view does not show whole; they stand right behind the summaries.

    A copy stays until the next compaction, wanted or not, so that the earlier request is a prefix of the later one.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._history: History | None = None
        self._compactions = 0
        self._seen = 0
        self._newest: dict[str, int] = {}
        """Content of each reminder → history row of its newest copy."""
        self._held: list[JsonRow] = []
        self.tokens = 0
        """Size of the rows that are held, uncorrected."""

    def update(self, chat: Conversation, wanted: Sequence[str]) -> bool:
        """Hold what is wanted and not shown whole; True if what is held has changed."""
        before = [row["content"] for row in self._held]
        if chat.history is not self._history:
            self._history, self._compactions, self._seen, self._newest = chat.history, -1, 0, {}
        if chat.view.compactions != self._compactions:
            self._compactions, self._held = chat.view.compactions, []
        self._look(chat.history)
        held = [row["content"] for row in self._held]
        for content in dict.fromkeys(wanted):
            index = self._newest.get(content)
            if content not in held and (index is None or not _is_whole(chat, index)):
                self._held.append(_reminder(content) if index is None else copy_json(chat.history.rows[index].raw))
                held.append(content)
        if held != before:
            self.tokens = sum(measure(row, self._count) for row in self._held)
        return held != before

    def _look(self, history: History) -> None:
        for index in range(self._seen, len(history)):
            raw = history.rows[index].raw
            if isinstance(raw.get("content"), str) and is_reminder(raw):
                self._newest[raw["content"]] = index
        self._seen = len(history)

    def rows(self) -> list[JsonRow]:
        """Copies of the rows that are held."""
        return [copy_json(row) for row in self._held]


def _is_whole(chat: Conversation, index: int) -> bool:
    view = chat.view
    pins = chat.groups.pins(view)
    stands = index >= view.frontier_row or any(group.start <= index < group.end for group in pins)
    return stands and index not in view.shortened


def _reminder(content: str) -> JsonRow:
    """A row for a content that the history does not hold: it is not lost for that."""
    return {"role": "user", "content": content, "metadata": {"ephemeral": True, "persisted": True}}
