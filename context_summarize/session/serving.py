"""Serves the rows of a request: the view as it stands, its size, and a word where it does not fit."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from context_summarize.core.view import View
from context_summarize.events import OVER_BUDGET, Outbox
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.view_rows import continues
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import RequestLimits
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.measure import Count

logger = logging.getLogger(__name__)


class Server:
    """Keeps the view of the conversation up to date, and hands out its rows."""

    def __init__(self, outbox: Outbox, meter: Meter, count: Count) -> None:
        self._outbox = outbox
        self._meter = meter
        self._count = count
        self._view: View | None = None
        self._warned = False

    def view(self, chat: Conversation) -> View:
        """The view of a conversation as it stands."""
        if self._view is None or self._view.state is not chat.view or self._view.groups is not chat.groups:
            self._view = View(chat.view, chat.groups)
        return self._view

    def forget(self) -> None:
        """The conversation has been cleared: what does not fit is told again."""
        self._view = None
        self._warned = False

    def rows(self, chat: Conversation, limits: RequestLimits, retained: Sequence[JsonRow] = ()) -> list[JsonRow]:
        """The rows of the request, as copies.

        Args:
            retained: rows that stand behind the summaries because the host wants them whole; they become part of it.
        """
        view = self.view(chat)
        size = view.tokens()
        used = limits.used(size)
        if used <= limits.budget:
            self._warned = False
        elif not self._warned:
            self._warned = True
            self._say_over_budget(view, limits, used)
        rows = view.rows(limits.system_prompt)
        apart, may_chain = limits.own.system_tokens, any(map(continues, reversed(rows)))
        self._meter.served(size + apart, system=view.system_tokens() + apart, may_chain=may_chain)
        if limits.status is not None:
            rows.insert(len(rows) - view.open_rows, limits.status)
        if retained:
            at = view.head_rows + bool(limits.system_prompt)
            rows[at:at] = retained
        return rows

    def _say_over_budget(self, view: View, limits: RequestLimits, used: int) -> None:
        largest = view.largest(limits.own.system_tokens)
        named = ", ".join(f"row {row['row']} ({row['role']}, {row['tokens']:,} tokens)" for row in largest)
        logger.warning(
            "the smallest view is %d tokens, the budget %d; a larger window or smaller rows are needed; largest: %s",
            used,
            limits.budget,
            named,
        )
        self._outbox.put(OVER_BUDGET, {"token_count": used, "budget": limits.budget, "largest": largest})
