"""Reports compactions: their events, lines in the log, and lines for the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from context_summarize.core.kept import Kept
from context_summarize.core.nodes import View
from context_summarize.core.plan import Plan
from context_summarize.core.render import Rendering
from context_summarize.events import COMPACTION, FINISHED, OVER_BUDGET, POST_COMPACT, PRE_COMPACT, STARTED, Outbox
from context_summarize.session.conversation import Conversation
from context_summarize.session.request_limits import RequestLimits
from context_summarize.transcript.rendered import counted

logger = logging.getLogger(__name__)

_LONG_WAIT = 3.0
"""Seconds of waiting after which the user gets a line about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes that a compaction or an undo makes, apart from the request's size."""

    plan: Plan | None = None
    """None for an undo."""
    from_cache: int = 0
    fallbacks: int = 0
    """Nodes of the view that no model wrote."""
    new_fallbacks: int = 0
    """Fallbacks that the view did not show before."""
    shortened: int = 0
    """Rows that the view shows shortened and did not shorten before."""
    values: Kept = field(default_factory=Kept)
    """How many exact values that the request showed before are still shown, and how many are not."""
    waited: float = 0.0
    """Seconds."""


class Announcer:
    """Puts the events of compactions into an outbox; each announcement is closed exactly once."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: tuple[int, int] | None = None
        """Size of the request and rows of the history when a compaction was announced that is not closed yet."""
        self._is_over_budget = False
        self._waits = 0
        """Requests that wait for summaries."""
        self._notice: asyncio.Task[None] | None = None
        """Shows the user a line after a while. It runs while any request waits."""

    def announce(self, reason: str, budget: int, used: int, rows: int) -> None:
        """Announces that a compaction is being made, unless that is announced already; `rows` counts the history."""
        if self._open is not None:
            return
        self._open = used, rows
        data = {"message_count": rows, "tokens": used, "token_count": used, "budget": budget}
        self._outbox.put(PRE_COMPACT, {**data, "usage": round(used / budget, 4), "reason": reason})
        self._outbox.put(STARTED, {"reason": reason, "input_tokens_before": used, "budget": budget})

    def withdraw(self, waited: float = 0.0) -> None:
        """Closes the announcement of a compaction that is not made after all, with no tokens saved."""
        if self._open is not None:
            used, rows = self._open
            self._close(used, used, rows, Change(waited=waited), "cancelled")

    def made(self, change: Change, limits: RequestLimits, before: Conversation, after: Conversation) -> int:
        """Reports a change of the view that was just made; returns the tokens that it saves, as the provider counts."""
        plan, values = change.plan, change.values
        rows, rows_left = before.rendering(), after.rendering()
        tokens, left = limits.used(rows.tokens), limits.used(rows_left.tokens)
        self.announce(plan.reason if plan else "undo", limits.budget, tokens, len(before.log))
        outcome = "fallback" if change.fallbacks else "completed"
        self._close(tokens, left, len(rows_left.entries), change, outcome)
        data = {
            "undo": plan is None,
            "before_tokens": tokens,
            "after_tokens": left,
            "before_messages": len(rows.entries),
            "after_messages": len(rows_left.entries),
            "budget": limits.budget,
            "target_tokens": limits.used(limits.own.target_room),
            "strategy_level": plan.level if plan else 0,
        }
        self._outbox.put(COMPACTION, data)
        logger.info(
            "%s: %d -> %d tokens, %s, %d merged, %d cached, %s, %s shortened",
            "compaction" if plan else "undo of a compaction",
            tokens,
            left,
            counted(plan.segments if plan else 0, "segment"),
            plan.merged if plan else 0,
            change.from_cache,
            counted(change.fallbacks, "fallback"),
            counted(change.shortened, "row"),
        )
        if values.kept or values.lost:
            found = "; recall finds them" if before.log.recall else ""
            examples = f", such as {', '.join(values.examples)}{found}" if values.lost else ""
            logger.info(
                "compaction: of %s that it concerns, the request still shows %d, and %d are gone%s",
                counted(values.kept + values.lost, "exact value"),
                values.kept,
                values.lost,
                examples,
            )
        if plan is not None:
            self._notify_user(change, tokens, left, after.view)
        return tokens - left

    def _notify_user(self, change: Change, before: int, after: int, view: View) -> None:
        summaries = counted(len(view.shown), "summary", "summaries")
        if self._outbox.tells_user:
            self._outbox.notify(f"context: {before:,} → {after:,} tokens, {summaries}, {change.waited:.1f} s")
        if change.new_fallbacks:
            failed = counted(change.new_fallbacks, "summary", "summaries")
            text = f"context: the provider did not write {failed}; quotations of user and agent take their place"
            self._outbox.tell(text, "warning")

    def warn_if_too_large(self, view: Rendering, limits: RequestLimits, used: int) -> None:
        """Warns once if the request, of `used` tokens, does not fit; again only after a request that fitted."""
        is_over_budget = used > limits.budget
        if is_over_budget and not self._is_over_budget:
            largest = view.largest(limits.own.system_tokens)
            named = ", ".join(f"row {row['row']} ({row['role']}, {row['tokens']:,} tokens)" for row in largest)
            logger.warning(
                "the request does not fit: at its smallest it holds %d tokens, with a budget of %d; use a larger "
                "window or smaller messages; the largest: %s",
                used,
                limits.budget,
                named,
            )
            self._outbox.put(OVER_BUDGET, {"token_count": used, "budget": limits.budget, "largest": largest})
        self._is_over_budget = is_over_budget

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Shows the host's user a line if the wait becomes long: one while any request waits."""
        self._waits += 1
        if self._outbox.tells_user and self._notice is None:
            self._notice = asyncio.create_task(self._notify_of_wait(), name="context-summarize:notice")
        try:
            yield
        finally:
            self._waits -= 1
            if self._notice is not None and not self._waits:
                self._notice.cancel()
                self._notice = None

    async def _notify_of_wait(self) -> None:
        await asyncio.sleep(_LONG_WAIT)
        self._outbox.notify("context: the request waits for summaries of older messages …")
        await self._outbox.flush()

    def _close(self, before: int, after: int, rows: int, change: Change, outcome: str) -> None:
        self._open = None
        data = {
            "message_count": rows,
            "tokens": after,
            "token_count": after,
            "tokens_saved": before - after,
            "segments": change.plan.segments if change.plan else 0,
            "merged": change.plan.merged if change.plan else 0,
            "from_cache": change.from_cache,
            "fallbacks": change.fallbacks,
            "shortened": change.shortened,
            "values_kept": change.values.kept,
            "values_lost": change.values.lost,
            "values_lost_examples": list(change.values.examples),
            "wait_ms": round(change.waited * 1000),
            "undo": change.plan is None and outcome != "cancelled",
        }
        self._outbox.put(POST_COMPACT, data)
        self._outbox.put(FINISHED, {"outcome": outcome, "input_tokens_before": before, "input_tokens_after": after})
