"""One compaction: planned, its missing summaries fetched, planned again; what came of it is returned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Literal

from context_summarize.core.frames import show_one_line
from context_summarize.core.nodes import Node, Summary, to_make, with_children
from context_summarize.core.notes_log import NotesAsk
from context_summarize.core.plan import CompactionRequest, Plan, Reason, is_worthwhile, make_plan, next_plan
from context_summarize.core.shown_groups import short_length
from context_summarize.core.view_size import PlanInput
from context_summarize.core.view_state import ShownNode, ShownNotes, ViewState
from context_summarize.redaction import traceback_of
from context_summarize.session.announcing import Announcer, Made, Shown
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import CompactionThrottle, Deadline, RequestLimits
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

logger = logging.getLogger(__name__)

_AT_ONCE = 5_000
"""Tokens of rows above which they are shortened in a thread."""
MOST_ROUNDS = 100
"""Planning rounds of one compaction; each round but the last makes at least one text that was missing."""

_QUICK_TOKENS, _QUICK_ROWS = 6_000, 400
"""Up to this view and history, notes are written within some ten milliseconds, and need no thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What the next compaction does, by what is closed now. Tokens as the provider counts, estimated."""

    reason: Reason | None
    """Why the next request would make one: `threshold` or `must_fit`; None = it would not."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A compaction that is ready to become the view."""

    plan: Plan
    view: ViewState
    new: tuple[ShownNode, ...]
    """The summaries that the view did not show before."""
    from_cache: int
    """Those of them that took no call."""
    before_tokens: int
    """Size of the request before it, as the provider counts."""

    def told(self, budget: int, shown: Shown, waited: float) -> Made:
        """What its events say, once it is the view."""
        return Made(
            reason=self.plan.reason,
            budget=budget,
            history_rows=shown.history_rows,
            before_tokens=self.before_tokens,
            after_tokens=shown.tokens,
            before_rows=shown.rows_before,
            after_rows=shown.rows,
            segments=self.plan.segments,
            merged=self.plan.merged,
            from_cache=self.from_cache,
            fallbacks=sum(item.summary.fallback for item in self.view.shown),
            waited=waited,
            rung=self.plan.level,
            new=[item.row["content"] for item in self.new],
        )


Outcome = Compaction | Plan | Literal["late"] | None
"""A compaction; or its summaries are late, and the view goes on as it is; or none is worth making.

A plan, of a compaction on demand alone: its missing texts are to be fetched while no request has to wait for them.
"""


class _Fetched(Enum):
    """What came of the summaries that a plan missed."""

    COMPLETE = "complete"
    """Every text is there: a summary, or a fallback in its place."""
    LATE = "late"
    """Some are late, and their work goes on; the view is below the budget and stays as it is."""
    CANCELLED = "cancelled"
    """The host has cancelled the wait for some; the view fits and stays as it is."""


class Compactor:
    """Makes compactions. It changes nothing of the conversation: what came of it is returned.

    Args:
        operations: tells what the host has under way.
    """

    def __init__(
        self, services: Services, tasks: SummaryRegistry, operations: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        self._services = services
        self._tasks = tasks
        self._operations = operations
        self._throttle = CompactionThrottle()
        self.announcer = Announcer(services.outbox, services.config.target_usage)

    def served(self) -> None:
        """One request has been served."""
        self._throttle.served()

    def committed(self) -> None:
        """A compaction has become the view."""
        self._throttle.fired()

    def scene(self, chat: Conversation, limits: RequestLimits) -> PlanInput:
        """What plans are made from."""
        return PlanInput(
            history=chat.history,
            builder=chat.builder,
            groups=chat.groups,
            view=chat.view,
            limits=limits.own,
            pins=tuple(sorted(chat.steered.pins)),
            size_of=self._tasks.size_of,
            count=self._services.count,
        )

    async def run(
        self,
        chat: Conversation,
        limits: RequestLimits,
        ask: CompactionRequest,
        wait: Deadline,
        is_current: Callable[[], bool],
    ) -> Outcome:
        """Plan, fetch what is missing, and plan again, until nothing is missing.

        Args:
            is_current: turns false when the history has been replaced meanwhile.

        A compaction on demand is planned once: whoever wants it gets what is missing by `fetch`, and comes again.
        """
        if ask.reason not in ("cold_cache", "manual"):
            self._tasks.begin()
        for _ in range(MOST_ROUNDS):
            plan = await self._plan(chat, limits, ask)
            worthwhile = is_worthwhile(plan, limits.own, may_fire=self._throttle.may_fire())
            if worthwhile and not plan.missing:
                return await self._compaction(chat, limits, plan)
            if not worthwhile or ask.prefetched == "room" or ask.reason == "cold_cache":
                break
            if ask.reason == "manual":
                return plan
            fetched = await self._fetch(chat, limits, plan, wait)
            if not is_current() or fetched is _Fetched.CANCELLED:
                break
            if fetched is _Fetched.LATE:
                return "late"
        else:
            logger.error("a plan did not come to its end in %d rounds; the view stays as it is", MOST_ROUNDS)
        self._withdraw(chat, limits, plan, wait)
        return None

    def _withdraw(self, chat: Conversation, limits: RequestLimits, plan: Plan, wait: Deadline) -> None:
        self.announcer.withdraw(limits.used(plan.tokens_before), len(chat.history), wait.since())

    async def fetch(self, chat: Conversation, limits: RequestLimits, plan: Plan, wait: Deadline) -> bool:
        """Get the missing texts of a compaction on demand; False where the host has cancelled it and the view fits."""
        if await self._fetch(chat, limits, plan, wait) is not _Fetched.CANCELLED:
            return True
        self._withdraw(chat, limits, plan, wait)
        return False

    async def _plan(self, chat: Conversation, limits: RequestLimits, ask: CompactionRequest) -> Plan:
        """A plan. Where a view must be made to fit, any row may be shortened, which takes long."""
        scene = self.scene(chat, limits)
        if ask.reason == "threshold":
            return make_plan(scene, ask)
        return await asyncio.to_thread(make_plan, scene.as_it_is(), ask)

    async def prepare(self, chat: Conversation, limits: RequestLimits) -> None:
        """Shorten the results that any plan shortens; in a thread where they are many."""
        groups, own = chat.groups, limits.own
        if own.shorten_above is not None:
            keep = short_length(own.shorten_above)
            results = groups.to_shorten(chat.view.frontier_row, len(chat.history) - own.keep_recent, own.shorten_above)
            if len(results) * keep > _AT_ONCE:
                await asyncio.to_thread(groups.shorten, results, keep)

    async def _fetch(self, chat: Conversation, limits: RequestLimits, plan: Plan, wait: Deadline) -> _Fetched:
        """Get a plan's missing summaries; fallbacks take the place of late ones where the view cannot stay as it is."""
        used = limits.used(plan.tokens_before)
        await self.announcer.announce(limits.budget, plan.reason, used, len(chat.history))
        before = self._services.clock()
        try:
            seconds = None if plan.reason == "manual" else wait.left()
            late = await self._tasks.get(plan.missing, chat.builder, limits.target, seconds)
        finally:
            wait.waited += self._services.clock() - before
        if late and plan.reason == "threshold":
            return _Fetched.LATE
        if late and self._tasks.is_stopped and used <= limits.budget:
            return _Fetched.CANCELLED
        await self._tasks.place(late, chat.builder)
        return _Fetched.COMPLETE

    async def _compaction(self, chat: Conversation, limits: RequestLimits, plan: Plan) -> Compaction:
        history, count = chat.history, self._services.count
        nodes = plan.view.nodes
        shown, rows = self._tasks.rows(nodes), len(history)
        texts, operations = self._tasks.texts(with_children(nodes)), self._operations()
        write = partial(self._or_none, partial(self._notes, chat, limits, plan, shown, texts, operations))
        is_quick = plan.tokens_before <= _QUICK_TOKENS and rows <= _QUICK_ROWS
        notes = write() if is_quick else await asyncio.to_thread(write)
        lines = [show_one_line(history, item, count) for item in shown[: plan.view.lines]]
        view = replace(plan.view, shown=(*lines, *shown[plan.view.lines :]), notes=notes, rows_at_compaction=rows)
        old = {node.place for node in chat.view.nodes}
        new = tuple(item for item in shown if item.node.place not in old)
        return Compaction(
            plan=plan,
            view=view,
            new=new,
            from_cache=sum(self._tasks.is_from_store(item.node.key) for item in new),
            before_tokens=limits.used(plan.tokens_before),
        )

    def _or_none(self, write: Callable[[], ShownNotes | None]) -> ShownNotes | None:
        """The row of notes; none where writing it fails: they are written from any text, and a request needs none."""
        try:
            return write()
        except Exception as error:  # noqa: BLE001 - whatever a text brings it to raise
            told = traceback_of(error, self._services.config.redact)
            logger.error("the notes cannot be written; the view goes on without them: %s", told)
            return None

    def _notes(
        self,
        chat: Conversation,
        limits: RequestLimits,
        plan: Plan,
        shown: Sequence[ShownNode],
        texts: Sequence[tuple[Node, Summary]],
        operations: tuple[str, ...],
    ) -> ShownNotes | None:
        """The row of notes of a plan: the one that stands, or a new one.

        Args:
            texts: summaries below the shown ones too: what is merged at once stands in no view, but quotes as well.
        """
        own, view = limits.own, chat.view
        if not own.notes_room:
            return None
        found = chat.notes.take_in(texts, plan.view.frontier)
        if not plan.notes_room:
            return None
        if view.notes is not None and not found and view.keeps_notes(plan.view.nodes, own.notes_room):
            return replace(view.notes, age=view.notes.age + 1)
        frontier, row = plan.view.frontier, plan.view.frontier_row
        asked = NotesAsk(frontier, row, plan.notes_room, own.role, own.own_budget, operations)
        return chat.notes.write(shown, asked)

    async def preview(self, chat: Conversation, limits: RequestLimits, reason: Reason | None) -> Preview:
        """What the next compaction does, without making it or asking anybody."""
        scene = self.scene(chat, limits)
        plan = await self._plan(chat, limits, CompactionRequest(reason)) if reason else next_plan(scene)
        due = reason is not None and is_worthwhile(plan, limits.own, may_fire=self._throttle.may_fire())
        summarises = plan.view.frontier > chat.view.frontier
        return Preview(
            reason=reason if due else None,
            before_tokens=limits.used(plan.tokens_before),
            after_tokens=limits.used(plan.tokens_after),
            budget=limits.budget,
            segments=plan.segments,
            merged=plan.merged,
            messages=chat.history.message_range(chat.view.frontier, plan.view.frontier) if summarises else None,
            calls=len({node.key for node in to_make(plan.missing, self._tasks.is_known)}),
        )
