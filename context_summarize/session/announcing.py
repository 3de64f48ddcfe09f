"""The events of one boundary: announced before the provider is asked, told when it is made, withdrawn when not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.events import COMPACTION, INCLUDE, POST_COMPACT, PRE_COMPACT, Outbox
from context_summarize.session.limits import Request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A boundary that has been made. Tokens as the provider counts, rows of the view."""

    before_tokens: int
    after_tokens: int
    before_rows: int
    after_rows: int
    segments: int
    merged: int
    from_cache: int
    digests: int
    """Nodes of the view that no model wrote."""
    waited: float
    """Seconds."""
    level: int
    """How far the plan had to go; see `Plan.level`."""
    new: Sequence[str]
    """Contents of the nodes that the view did not show before."""


class Announcer:
    """Puts the events of boundaries into an outbox; each announcement is closed exactly once."""

    def __init__(self, outbox: Outbox, target_usage: float) -> None:
        self._outbox = outbox
        self._target_usage = target_usage
        self._announced = False

    async def announce(self, request: Request, reason: str, used: int, rows: int) -> None:
        """Say that a boundary is being made, so that a host can show that it waits."""
        if not self._announced:
            self._put_pre(request, reason, used, rows)
            await self._outbox.flush()

    def _put_pre(self, request: Request, reason: str, used: int, rows: int) -> None:
        self._announced = True
        self._outbox.put(
            PRE_COMPACT,
            {
                "message_count": rows,
                "tokens": used,
                "token_count": used,
                "budget": request.budget,
                "usage": round(used / request.budget, 4),
                "reason": reason,
            },
        )

    def withdraw(self, used: int, rows: int, waited: float) -> None:
        """Close an announcement of a boundary that is not made after all: nothing was saved."""
        if self._announced:
            self._put_post(rows, used, waited)

    def _put_post(
        self, rows: int, used: int, waited: float, saved: int = 0, counts: tuple[int, int, int, int] = (0, 0, 0, 0)
    ) -> None:
        self._announced = False
        segments, merged, from_cache, digests = counts
        self._outbox.put(
            POST_COMPACT,
            {
                "message_count": rows,
                "tokens": used,
                "token_count": used,
                "tokens_saved": saved,
                "segments": segments,
                "merged": merged,
                "from_cache": from_cache,
                "digests": digests,
                "wait_ms": round(waited * 1000),
            },
        )

    def made(self, request: Request, reason: str, made: Made, rows: int) -> None:
        """Tell of a boundary that has just become the view's state; `rows` are those of the history."""
        if not self._announced:
            self._put_pre(request, reason, made.before_tokens, rows)
        saved = made.before_tokens - made.after_tokens
        counts = (made.segments, made.merged, made.from_cache, made.digests)
        self._put_post(made.after_rows, made.after_tokens, made.waited, saved, counts)
        self._outbox.put(
            COMPACTION,
            {
                "before_tokens": made.before_tokens,
                "after_tokens": made.after_tokens,
                "before_messages": made.before_rows,
                "after_messages": made.after_rows,
                "budget": request.budget,
                "target_tokens": int(self._target_usage * request.budget),
                "strategy_level": made.level,
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
