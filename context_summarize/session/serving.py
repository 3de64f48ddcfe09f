"""The rows of a request: the view as it stands, reminders that the host wants whole, a word where it does not fit."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from context_summarize.core.log import Log
from context_summarize.core.render import Rendering, pins
from context_summarize.events import OVER_BUDGET, Outbox
from context_summarize.messages.reading import is_reminder
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.messages.view_rows import continues, view_row
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import RequestLimits
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.measure import Count, measure

logger = logging.getLogger(__name__)


class Server:
    """Hands out the rows of requests."""

    def __init__(self, outbox: Outbox, meter: Meter, count: Count) -> None:
        self._outbox = outbox
        self._meter = meter
        self.retention = Retention(count)
        self._warned = False

    def rows(self, view: Rendering, limits: RequestLimits) -> list[JsonRow]:
        """Returns the rows of the request, as copies."""
        size = view.tokens
        used = limits.used(size)
        if used <= limits.budget:
            self._warned = False
        elif not self._warned:
            self._warned = True
            self._say_over_budget(view, limits, used)
        rows = view.rows(limits.system_prompt)
        apart, may_chain = limits.own.system_tokens, any(map(continues, reversed(rows)))
        sent = size + apart + self.retention.tokens
        self._meter.served(sent, system=view.system_tokens + apart, may_chain=may_chain)
        if limits.status is not None:
            rows.insert(len(rows) - len(view.open), limits.status)
        if self.retention.tokens:
            at = len(view.head) + bool(limits.system_prompt)
            rows[at:at] = map(copy_json, self.retention.held)
        return rows

    def _say_over_budget(self, view: Rendering, limits: RequestLimits, used: int) -> None:
        largest = view.largest(limits.own.system_tokens)
        named = ", ".join(f"row {row['row']} ({row['role']}, {row['tokens']:,} tokens)" for row in largest)
        logger.warning(
            "the request does not fit: at its smallest it holds %d tokens, with a budget of %d; use a larger window or "
            "smaller messages; the largest: %s",
            used,
            limits.budget,
            named,
        )
        self._outbox.put(OVER_BUDGET, {"token_count": used, "budget": limits.budget, "largest": largest})


class Retention:
    """Holds copies of the wanted rows that the view does not show whole; they stand right behind the summaries.

    A copy stays until the next compaction, wanted or not, so that the earlier request is a prefix of the later one.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._compaction: tuple[Log, int] | None = None
        """The compaction behind whose summaries the rows stand."""
        self.held: list[JsonRow] = []
        """The rows, which are handed out as copies."""
        self.tokens = 0
        """Size of the rows that are held, uncorrected."""

    def update(self, chat: Conversation, wanted: Sequence[str]) -> bool:
        """Holds what is wanted and not shown whole; True if what is held has changed."""
        compaction = (chat.log, chat.view.compactions)
        held = [*self.held] if compaction == self._compaction else []
        for content in wanted:
            if any(row["content"] == content for row in held):
                continue
            index = _newest(chat.log, content)
            if index is None:  # not in the history, and not lost for that
                held.append({"role": "user", "content": content, "metadata": {"ephemeral": True, "persisted": True}})
            elif not _is_whole(chat, index):
                held += filter(None, [view_row(chat.log.rows[index])])
        is_new, self.held, self._compaction = held != self.held, held, compaction
        if is_new:
            self.tokens = sum(measure(row, self._count) for row in held)
        return is_new


def _is_whole(chat: Conversation, index: int) -> bool:
    view = chat.view
    is_shown = index >= view.frontier_row or any(group.start <= index < group.end for group in pins(chat.log, view))
    return is_shown and index not in view.shortened


def _newest(log: Log, content: str) -> int | None:
    """Returns the last row that is a reminder with this content; None without one."""
    for index in reversed(range(len(log))):
        raw = log.rows[index].raw
        if raw.get("content") == content and is_reminder(raw):
            return index
    return None
