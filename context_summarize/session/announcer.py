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
from context_summarize.events import COMPACTION, OVER_BUDGET, POST_COMPACT, PRE_COMPACT, Outbox
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
    """Puts the events of compactions into an outbox; each announcement is closed exactly once.

    Args:
        to_user: True if the host's user gets a line about what takes time or costs quality.
    """

    def __init__(self, outbox: Outbox, *, to_user: bool) -> None:
        self._outbox, self._to_user = outbox, to_user
        self._is_open = self._is_over_budget = False
        self._waits = 0
        """Requests that wait for summaries."""
        self._notice: asyncio.Task[None] | None = None
        """Shows the user a line after a while. It runs while any request waits."""

    def announce(self, reason: str, budget: int, used: int, rows: int) -> None:
        """Announces that a compaction is being made, unless that is announced already; `rows` counts the history."""
        if self._is_open:
            return
        self._is_open = True
        data = {"message_count": rows, "tokens": used, "token_count": used, "budget": budget}
        self._outbox.put(PRE_COMPACT, {**data, "usage": round(used / budget, 4), "reason": reason})

    def withdraw(self, used: int, rows: int, waited: float) -> None:
        """Closes the announcement of a compaction that is not made after all, with no tokens saved."""
        if self._is_open:
            self._close(used, used, rows, Change(waited=waited), is_undo=False)

    def made(self, change: Change, limits: RequestLimits, before: Conversation, after: Conversation) -> int:
        """Reports a change of the view that was just made; returns the tokens that it saves, as the provider counts."""
        plan, values = change.plan, change.values
        rows, rows_left = before.rendering(), after.rendering()
        tokens, left = limits.used(rows.tokens), limits.used(rows_left.tokens)
        self.announce(plan.reason if plan else "undo", limits.budget, tokens, len(before.log))
        self._close(tokens, left, len(rows_left.entries), change, is_undo=plan is None)
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
        if self._to_user and plan is not None:
            self._notify_user(change, tokens, left, after.view)
        return tokens - left

    def _notify_user(self, change: Change, before: int, after: int, view: View) -> None:
        summaries = counted(len(view.shown), "summary", "summaries")
        self._outbox.notify(f"context: {before:,} → {after:,} tokens, {summaries}, {change.waited:.1f} s")
        if change.new_fallbacks:
            failed = counted(change.new_fallbacks, "summary", "summaries")
            text = f"context: the provider did not write {failed}; quotations of user and agent take their place"
            self._outbox.notify(text, "warning")

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
        if self._to_user and self._notice is None:
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

    def _close(self, before: int, after: int, rows: int, change: Change, *, is_undo: bool) -> None:
        self._is_open = False
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
            "undo": is_undo,
        }
        self._outbox.put(POST_COMPACT, data)
