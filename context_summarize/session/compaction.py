"""A compaction: the view that it makes of its plan, with summaries and notes; and the events that tell of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from context_summarize.background import in_thread
from context_summarize.core.frames import show_node, show_notes
from context_summarize.core.nodes import to_make, with_children
from context_summarize.core.notes_log import Kept
from context_summarize.core.plan import Plan, Reason
from context_summarize.core.view import View
from context_summarize.core.view_state import ViewState
from context_summarize.events import COMPACTION, POST_COMPACT, PRE_COMPACT, Outbox
from context_summarize.redaction import traceback_of
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import RequestLimits
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services
from context_summarize.transcript.rows import counted

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What `compact()` would do now. Tokens as the provider counts; estimated for summaries that are not known yet."""

    reason: Reason | None
    """Why the next request would make a compaction by itself: `threshold` or `must_fit`; None = it would not."""
    before_tokens: int
    after_tokens: int
    budget: int
    segments: int
    """Stretches of history that would be summarised."""
    merged: int
    """Summaries that would be joined from others."""
    messages: tuple[int, int] | None
    """First and last message that would be summarised, numbered as frames do; None = none would."""
    calls: int
    """Summaries that are not known yet and would be asked for, unless the store has them."""
    notes: str | None
    """The row of notes that would stand after the summaries; None = none would."""


class ViewMaker:
    """Makes views of plans.

    Args:
        operations: tells what the host has under way.
    """

    def __init__(self, services: Services, tasks: SummaryRegistry, operations: Callable[[], tuple[str, ...]]) -> None:
        self._services = services
        self._tasks = tasks
        self._operations = operations

    async def view(self, chat: Conversation, plan: Plan) -> ViewState:
        """Returns the plan's view with the rows that are known; the notes tell what these leave out."""
        view, before = plan.view, chat.view
        rows = filter(None, (self._tasks.shown(node, chat.history) for node in view.nodes))
        bare = replace(view, shown=tuple(rows), places=before.places, told=before.told)
        # What is merged stands in the view no more; what is merged at once has stood in none.
        below = [node for node in with_children(view.nodes) if node not in view.nodes]
        known = [(node, text) for node in below if (text := self._tasks.text(node)) is not None]
        known += [(item.node, item.summary) for item in before.shown if item.node not in view.nodes]
        earlier = {node.place: (node, text) for node, text in known if not text.fallback}
        jobs = self._operations()

        def write() -> ViewState:
            written = chat.notes.write(bare, chat.groups, [*earlier.values()], plan.notes_room, jobs)
            frame, history, count = self._services.prompts.frame.fill, chat.history, self._services.count
            pairs = zip(bare.shown, written.shown, strict=True)
            return replace(
                bare,
                shown=tuple(show_node(history, item.node, item.summary, frame, count, text) for item, text in pairs),
                notes=show_notes(history, written.text, view.frontier, count) if written.text else None,
                places=written.places,
                told=written.told,
            )

        if not view.frontier:
            return bare
        return await self._noted(chat, write, bare, "the notes cannot be written, so the view has none")

    async def kept(self, chat: Conversation, view: ViewState) -> Kept:
        """What this view, the next one, still holds of the exact values of the rows that it summarises anew."""

        def look() -> Kept:
            rows = (entry.row for entry in View(view, chat.groups).entries())
            return chat.notes.kept(chat.view.frontier, view.frontier, rows)

        return await self._noted(chat, look, Kept(), "the exact values that the view still holds cannot be counted")

    async def _noted(self, chat: Conversation, do: Callable[[], T], otherwise: T, failed: str) -> T:
        """What the notes come to, in a thread where rows are many; a fault in them costs no request.

        Args:
            failed: what the log says then.
        """
        try:
            return await in_thread(chat.history.characters_from(0), do)
        except Exception as error:  # noqa: BLE001 - notes are written of any text, and a request needs none
            told = traceback_of(error, self._services.config.redact)
            logger.error("%s: %s", failed, told)
            return otherwise

    async def preview(self, chat: Conversation, limits: RequestLimits, plan: Plan, reason: Reason | None) -> Preview:
        """What a compaction by this plan does, without making it or asking anybody."""
        if plan.freed <= 0:  # none would be made
            plan = replace(plan, view=chat.view, segments=0, merged=0, missing=(), tokens_after=plan.tokens_before)
            view, after = chat.view, plan.tokens_after
        else:
            view = await self.view(chat, plan)
            after = View(view, chat.groups).tokens()
            if plan.missing:
                after = plan.tokens_after - plan.notes_room + (view.notes.tokens if view.notes else 0)
        summarises = view.frontier > chat.view.frontier
        return Preview(
            reason=reason,
            before_tokens=limits.used(plan.tokens_before),
            after_tokens=limits.used(after),
            budget=limits.budget,
            segments=plan.segments,
            merged=plan.merged,
            messages=chat.history.message_range(chat.view.frontier, view.frontier) if summarises else None,
            calls=len({node.key for node in to_make(plan.missing, self._tasks.is_known)}),
            notes=view.notes.text if view.notes else None,
        )


# --- its events -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a compaction has changed, or an undo, beside the sizes of the request."""

    plan: Plan | None = None
    """None for an undo."""
    from_cache: int = 0
    fallbacks: int = 0
    """Nodes of the view that no model wrote."""
    shortened: int = 0
    """Rows that the view shows shortened, and did not before."""
    values: Kept = field(default_factory=Kept)
    """What the view holds of the exact values of the rows that are summarised anew."""
    waited: float = 0.0
    """Seconds."""


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
            self._close(used, used, rows, Change(waited=waited), is_undo=False)

    def made(self, change: Change, limits: RequestLimits, before: Conversation, after: Conversation) -> int:
        """Tell of a change that has just become the view; the tokens that it saves, as the provider counts."""
        plan, values = change.plan, change.values
        tokens, left = limits.used(before.rows.tokens()), limits.used(after.rows.tokens())
        self.announce(plan.reason if plan else "undo", limits.budget, tokens, len(before.history))
        self._close(tokens, left, len(after.rows), change, is_undo=plan is None)
        told = {
            "undo": plan is None,
            "before_tokens": tokens,
            "after_tokens": left,
            "before_messages": len(before.rows),
            "after_messages": len(after.rows),
            "budget": limits.budget,
            "target_tokens": limits.used(limits.own.target_room),
            "strategy_level": plan.level if plan else 0,
        }
        self._outbox.put(COMPACTION, told)
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
            found = "; recall finds them" if before.history.recall else ""
            such = f", such as {', '.join(values.examples)}{found}" if values.lost else ""
            logger.info(
                "compaction: of %s that are summarised now, %d stand in the view, %d do not%s",
                counted(values.kept + values.lost, "exact value"),
                values.kept,
                values.lost,
                such,
            )
        return tokens - left

    def _close(self, before: int, after: int, rows: int, change: Change, *, is_undo: bool) -> None:
        self._is_open = False
        told = {
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
        self._outbox.put(POST_COMPACT, told)
