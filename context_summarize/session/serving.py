"""The rows of a request: the view as it stands, reminders that the host wants whole, a word where it does not fit."""

from __future__ import annotations

import logging

from context_summarize.core.render import Rendering
from context_summarize.events import OVER_BUDGET, Outbox
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.messages.view_rows import continues
from context_summarize.session.request_limits import RequestLimits
from context_summarize.session.retention import Retention
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.measure import Count

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
