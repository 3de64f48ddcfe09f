"""The events of compactions: announced before the provider is asked, told when one is made, withdrawn when not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.events import COMPACTION, INCLUDE, POST_COMPACT, PRE_COMPACT, Outbox

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A compaction that has become the view. Tokens as the provider counts, rows of the view."""

    reason: str
    budget: int
    history_rows: int
    before_tokens: int
    after_tokens: int
    before_rows: int
    after_rows: int
    segments: int
    merged: int
    from_cache: int
    fallbacks: int
    """Nodes of the view that no model wrote."""
    waited: float
    """Seconds."""
    rung: int
    """How far the plan had to go; see `Plan.level`."""
    new: Sequence[str]
    """Contents of the nodes that the view did not show before."""
    undo: bool = False
    """True where the last compaction was taken back: the request has grown."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The view that a compaction has left, beside the one before it."""

    tokens: int
    """Of the request, as the provider counts."""
    rows: int
    rows_before: int
    history_rows: int


class Announcer:
    """Puts the events of compactions into an outbox; each announcement is closed exactly once."""

    def __init__(self, outbox: Outbox, target_usage: float) -> None:
        self._outbox = outbox
        self._target_usage = target_usage
        self._announced = False

    async def announce(self, budget: int, reason: str, used: int, rows: int) -> None:
        """Say that a compaction is being made, so that a host can show that it waits."""
        if not self._announced:
            self._put_pre(budget, reason, used, rows)
            await self._outbox.flush()

    def _put_pre(self, budget: int, reason: str, used: int, rows: int) -> None:
        self._announced = True
        self._outbox.put(
            PRE_COMPACT,
            {
                "message_count": rows,
                "tokens": used,
                "token_count": used,
                "budget": budget,
                "usage": round(used / budget, 4),
                "reason": reason,
            },
        )

    def withdraw(self, used: int, rows: int, waited: float) -> None:
        """Close an announcement of a compaction that is not made after all: nothing was saved."""
        if self._announced:
            self._put_post(rows, used, waited)

    def _put_post(
        self,
        rows: int,
        used: int,
        waited: float,
        saved: int = 0,
        counts: tuple[int, int, int, int] = (0, 0, 0, 0),
        *,
        undo: bool = False,
    ) -> None:
        self._announced = False
        segments, merged, from_cache, fallbacks = counts
        self._outbox.put(
            POST_COMPACT,
            {
                "undo": undo,
                "message_count": rows,
                "tokens": used,
                "token_count": used,
                "tokens_saved": saved,
                "segments": segments,
                "merged": merged,
                "from_cache": from_cache,
                "digests": fallbacks,
                "wait_ms": round(waited * 1000),
            },
        )

    def made(self, made: Made) -> None:
        """Tell of a compaction that has just become the view."""
        if not self._announced:
            self._put_pre(made.budget, made.reason, made.before_tokens, made.history_rows)
        saved = made.before_tokens - made.after_tokens
        counts = (made.segments, made.merged, made.from_cache, made.fallbacks)
        self._put_post(made.after_rows, made.after_tokens, made.waited, saved, counts, undo=made.undo)
        self._outbox.put(
            COMPACTION,
            {
                "undo": made.undo,
                "before_tokens": made.before_tokens,
                "after_tokens": made.after_tokens,
                "before_messages": made.before_rows,
                "after_messages": made.after_rows,
                "budget": made.budget,
                "target_tokens": int(self._target_usage * made.budget),
                "strategy_level": made.rung,
            },
        )
        for content in made.new:
            self._outbox.put(INCLUDE, {"source": "context-summarize", "content": content})
        logger.info(
            "compaction: %d -> %d tokens, %d segments, %d merged, %d cached, %d fallbacks",
            made.before_tokens,
            made.after_tokens,
            *counts,
        )
