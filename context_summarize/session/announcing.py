"""The events of compactions: one before it waits, one when it ends, made or not, and what a compaction has changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from context_summarize.core.notes_log import Kept
from context_summarize.events import COMPACTION, POST_COMPACT, PRE_COMPACT, Outbox
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import RequestLimits
from context_summarize.transcript.rows import counted

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A compaction that has become the view, or an undo. Tokens of the request as the provider counts, rows of it."""

    reason: str = ""
    budget: int = 0
    target_tokens: int = 0
    """What a compaction aims at."""
    history_rows: int = 0
    before_tokens: int
    after_tokens: int
    before_rows: int = 0
    after_rows: int
    segments: int = 0
    merged: int = 0
    from_cache: int = 0
    shortened: int = 0
    """Rows that the view shows shortened, and did not before."""
    values: Kept = field(default_factory=Kept)
    """What the view holds of the exact values of the rows that are summarised anew."""
    recall: bool = False
    """True where the model can read the originals back."""
    fallbacks: int = 0
    """Nodes of the view that no model wrote."""
    level: int = 0
    """See `Plan.level`."""
    waited: float = 0.0
    """Seconds."""


def change_of(reason: str, limits: RequestLimits, before: Conversation, after: Conversation) -> Change:
    """The sizes of a change of the view."""
    return Change(
        reason=reason,
        budget=limits.budget,
        target_tokens=limits.used(limits.own.target_room),
        history_rows=len(before.history),
        before_tokens=limits.used(before.rows.tokens()),
        after_tokens=limits.used(after.rows.tokens()),
        before_rows=len(before.rows),
        after_rows=len(after.rows),
        fallbacks=sum(item.summary.fallback for item in after.view.shown),
    )


class Announcer:
    """Puts the events of compactions into an outbox; each announcement is closed exactly once."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._is_open = False

    def announce(self, reason: str, budget: int, used: int, rows: int) -> None:
        """Say that a compaction is being made, unless that is known; `rows`: of the history."""
        if self._is_open:
            return
        self._is_open = True
        told = {"message_count": rows, "tokens": used, "token_count": used, "budget": budget}
        self._outbox.put(PRE_COMPACT, {**told, "usage": round(used / budget, 4), "reason": reason})

    def withdraw(self, used: int, rows: int, waited: float) -> None:
        """Close an announcement of a compaction that is not made after all: nothing was saved."""
        if self._is_open:
            self._close(Change(before_tokens=used, after_tokens=used, after_rows=rows, waited=waited))

    def made(self, change: Change) -> None:
        """Tell of a change that has just become the view."""
        self.announce(change.reason, change.budget, change.before_tokens, change.history_rows)
        self._close(change)
        told = {
            "undo": change.reason == "undo",
            "before_tokens": change.before_tokens,
            "after_tokens": change.after_tokens,
            "before_messages": change.before_rows,
            "after_messages": change.after_rows,
            "budget": change.budget,
            "target_tokens": change.target_tokens,
            "strategy_level": change.level,
        }
        self._outbox.put(COMPACTION, told)
        logger.info(
            "%s: %d -> %d tokens, %s, %d merged, %d cached, %s, %s shortened",
            "undo of a compaction" if change.reason == "undo" else "compaction",
            change.before_tokens,
            change.after_tokens,
            counted(change.segments, "segment"),
            change.merged,
            change.from_cache,
            counted(change.fallbacks, "fallback"),
            counted(change.shortened, "row"),
        )
        if values := change.values.kept + change.values.lost:
            found = "; recall finds them" if change.recall else ""
            such = f", such as {', '.join(change.values.examples)}{found}" if change.values.lost else ""
            logger.info(
                "compaction: of %s that are summarised now, %d stand in the view, %d do not%s",
                counted(values, "exact value"),
                change.values.kept,
                change.values.lost,
                such,
            )

    def _close(self, change: Change) -> None:
        self._is_open = False
        told = {
            "message_count": change.after_rows,
            "tokens": change.after_tokens,
            "token_count": change.after_tokens,
            "tokens_saved": change.before_tokens - change.after_tokens,
            "segments": change.segments,
            "merged": change.merged,
            "from_cache": change.from_cache,
            "fallbacks": change.fallbacks,
            "shortened": change.shortened,
            "values_kept": change.values.kept,
            "values_lost": change.values.lost,
            "values_lost_examples": list(change.values.examples),
            "wait_ms": round(change.waited * 1000),
            "undo": change.reason == "undo",
        }
        self._outbox.put(POST_COMPACT, told)
