"""The view that a compaction makes of its plan: the rows of its summaries, and the row of notes. Nothing is changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from context_summarize.background import in_thread
from context_summarize.core.frames import show_node, show_notes
from context_summarize.core.nodes import to_make, with_children
from context_summarize.core.notes_log import Kept
from context_summarize.core.plan import Plan, Reason
from context_summarize.core.view import View
from context_summarize.core.view_state import ViewState
from context_summarize.redaction import traceback_of
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import RequestLimits
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

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
        bare = replace(
            view, shown=tuple(self._tasks.rows(view.nodes, chat.history)), places=before.places, told=before.told
        )
        # What is merged stands in the view no more; what is merged at once has stood in none.
        below = [node for node in with_children(view.nodes) if node not in view.nodes]
        earlier = {node.place: (node, text) for node, text in self._tasks.texts(below)}
        gone = (item for item in before.shown if item.node not in view.nodes and not item.summary.fallback)
        earlier |= {item.node.place: (item.node, item.summary) for item in gone}
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
