"""Tells of compactions: their events, lines in the log, and lines for the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from context_summarize.core.draft import Plan
from context_summarize.core.view import View
from context_summarize.events import COMPACTION, FINISHED, OVER_BUDGET, POST_COMPACT, PRE_COMPACT, STARTED, Outbox
from context_summarize.session.request_limits import RequestLimits
from context_summarize.transcript.marks import counted

logger = logging.getLogger(__name__)

_LONG_WAIT = 3.0
"""Seconds of waiting after which the user gets a line about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A new cut, with the views before and after it."""

    before: View
    after: View
    rows: int
    """Rows of the history."""
    plan: Plan | None = None
    """None for an undo."""
    from_cache: int = 0
    new_fallbacks: int = 0
    """Fallbacks that the view did not show before."""
    waited: float = 0.0
    """Seconds."""

    @property
    def fallbacks(self) -> int:
        """Nodes of the view that no model wrote."""
        return sum(text.fallback for text in self.after.texts.values())

    @property
    def shortened(self) -> int:
        """Rows that the view shows cut and did not cut before."""
        return len(self.after.shortened - self.before.shortened)


class Announcement:
    """The compaction that may come: it is announced once, whoever waits for it, and closed exactly if it was."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._users = 0
        """Requests that may wait for it."""
        self._open: tuple[int, int] | None = None
        """Tokens of the request and rows of the history when it was announced; None while it is not open."""
        self._notice: asyncio.TimerHandle | None = None
        """Shows the user a line if a request waits long for it."""

    @property
    def is_open(self) -> bool:
        """True from the announcement on until it is closed."""
        return self._open is not None

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Withdraws it after the block, unless others still want it."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self.withdraw()

    def open(self, reason: str, budget: int, used: int, rows: int) -> None:
        """Announces the compaction, unless that has been done; `rows` counts the history."""
        if self._open is not None:
            return
        self._open = used, rows
        data = {"message_count": rows, "tokens": used, "budget": budget, "reason": reason}
        self._outbox.put(PRE_COMPACT, data)
        self._outbox.put(STARTED, {"reason": reason, "input_tokens_before": used, "budget": budget})
        self._outbox.start()
        if self._outbox.tells_user:
            self._notice = asyncio.get_running_loop().call_later(_LONG_WAIT, self._notify_of_wait)

    def _notify_of_wait(self) -> None:
        self._outbox.notify("context: the request waits for summaries of older messages …")
        self._outbox.start()

    def withdraw(self) -> None:
        """Closes the announcement of a compaction that is not made after all, with no tokens saved."""
        if self._open is not None:
            used, rows = self._open
            figures = dict.fromkeys(("segments", "merged", "from_cache", "fallbacks", "shortened", "wait_ms"), 0)
            self.close(used, used, rows, figures, "cancelled")
            self._outbox.start()

    def close(self, before: int, after: int, rows: int, figures: Mapping[str, object], outcome: str) -> None:
        """Closes the announcement; `before` and `after` are tokens of the request."""
        self._open = None
        if self._notice is not None:
            self._notice.cancel()
        sizes = {"message_count": rows, "tokens": after, "tokens_saved": before - after}
        self._outbox.put(POST_COMPACT, {**sizes, **figures})
        self._outbox.put(FINISHED, {"outcome": outcome, "input_tokens_before": before, "input_tokens_after": after})


class Telling:
    """Puts what a session tells into its outbox and into the log."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._is_over_budget = False

    def made(self, change: Change, limits: RequestLimits, announced: Announcement) -> int:
        """Reports a new cut; returns the tokens that it saves, as the provider counts."""
        plan, before, after = change.plan, change.before, change.after
        tokens, left = limits.used(before.tokens), limits.used(after.tokens)
        announced.open(plan.reason if plan else "undo", limits.budget, tokens, change.rows)
        figures = {
            "segments": plan.segments if plan else 0,
            "merged": plan.merged if plan else 0,
            "from_cache": change.from_cache,
            "fallbacks": change.fallbacks,
            "shortened": change.shortened,
            "wait_ms": round(change.waited * 1000),
        }
        announced.close(tokens, left, len(after.entries), figures, "fallback" if change.fallbacks else "completed")
        data = {
            "undo": plan is None,
            "before_tokens": tokens,
            "after_tokens": left,
            "before_messages": len(before.entries),
            "after_messages": len(after.entries),
            "budget": limits.budget,
            "target_tokens": limits.used(limits.own.target_room),
            "strategy_level": plan.level if plan else 0,
        }
        self._outbox.put(COMPACTION, data)
        what = "compaction" if plan else "undo of a compaction"
        logger.info(
            "%s: %d -> %d tokens, %s", what, tokens, left, ", ".join(f"{figures[one]} {one}" for one in figures)
        )
        if plan is not None:
            self._notify_user(change, tokens, left)
        self._outbox.start()
        return tokens - left

    def _notify_user(self, change: Change, before: int, after: int) -> None:
        summaries = counted(len(change.after.texts), "summary", "summaries")
        if self._outbox.tells_user:
            self._outbox.notify(f"context: {before:,} → {after:,} tokens, {summaries}, {change.waited:.1f} s")
        if change.new_fallbacks:
            failed = counted(change.new_fallbacks, "summary", "summaries")
            text = f"context: the provider did not write {failed}; quotations of user and agent take their place"
            self._outbox.tell(text, "warning")

    def warn_if_too_large(self, shown: View, limits: RequestLimits) -> None:
        """Warns once if the request does not fit; again only after a request that fitted."""
        used = limits.used(shown.tokens)
        is_over_budget = used > limits.budget
        if is_over_budget and not self._is_over_budget:
            largest = shown.largest(limits.own.system_tokens)
            named = ", ".join(f"row {row['row']} ({row['role']}, {row['tokens']:,} tokens)" for row in largest)
            logger.warning(
                "the request does not fit: at its smallest it holds %d tokens, with a budget of %d; use a larger "
                "window or smaller messages; the largest: %s",
                used,
                limits.budget,
                named,
            )
            self._outbox.put(OVER_BUDGET, {"tokens": used, "budget": limits.budget, "largest": largest})
        self._is_over_budget = is_over_budget
