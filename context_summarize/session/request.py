"""A request, from its limits to its rows: the conversation is resumed, indexed, compacted where due, and served."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from context_summarize.background import LONG
from context_summarize.core.history import History
from context_summarize.core.plan import Plan, next_plan
from context_summarize.core.view_size import PlanInput
from context_summarize.core.view_state import ViewState
from context_summarize.messages.rows import JsonRow
from context_summarize.session.announcing import Announcer, Change
from context_summarize.session.compaction import ViewMaker
from context_summarize.session.conversation import (
    Conversation,
    compacted,
    derive_sizes,
    start_segments,
    with_prompt,
    with_view,
)
from context_summarize.session.decide import Case, Step, decide_for
from context_summarize.session.limits import CompactionThrottle, Host, RequestLimits, Wanted, compact_from, patience
from context_summarize.session.prefetch import Prefetch
from context_summarize.session.records import Records
from context_summarize.session.resume import Resumption
from context_summarize.session.retention import Retention
from context_summarize.session.serving import Server
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

T = TypeVar("T")

_COLD_AFTER = 3_600
"""Seconds: no provider's prompt cache, where it is not asked for a longer life, outlives an hour without a request."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One request, or one `compact()`: what it wants, and what it has tried."""

    limits: RequestLimits
    retained: tuple[str, ...] = ()
    is_manual: bool = False
    focus: str | None = None
    is_cold: bool = False
    until: float | None = None
    """Time of the clock at which its waiting ends; None before it waits."""
    waited: float = 0.0
    """Seconds."""
    in_vain: bool = False
    indexed: History | None = None
    """Whose segments are cut: rows that come meanwhile are the next request's."""
    has_begun: bool = False
    """True once a compaction was due."""
    made: ViewState | None = None
    """The view that its compaction has made: one request makes one, and what comes meanwhile is the next one's."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be done next, and for which conversation that was decided."""

    step: Step
    plan: Plan | None
    chat: Conversation
    limits: RequestLimits


class Requests:
    """Holds the conversation and answers requests about it.

    There is no lock: rows, other requests and the user's steering may come during any wait. What was planned before a
    wait is committed only if history, view and pins are still those that it was planned for.
    """

    def __init__(
        self, services: Services, tasks: SummaryRegistry, host: Host, operations: Callable[[], tuple[str, ...]]
    ) -> None:
        self._services, self._config = services, services.config
        self._tasks = tasks
        self._host = host
        self._views = ViewMaker(services, tasks, operations)
        self._announcer = Announcer(services.outbox, self._config.target_usage)
        self._throttle = CompactionThrottle()
        self._prefetch = Prefetch(tasks, services.outbox, self._plan_next)
        self._server = Server(services.outbox, host.meter, services.count)
        self._retention = Retention(services.count)
        self.records = Records(services.store, services.prompts, self._config, host.session_id)
        self.resumption = Resumption(self.records, tasks, services.count)
        self._chat: Conversation | None = None
        self.paused = False
        self._under_way = 0
        """Requests that have a compaction due."""
        self._served: tuple[object, ...] | None = None
        """The request that was served last; a correction of the measuring is not in it."""
        self._served_at: tuple[float, History, int] | None = None
        """Seconds of the clock at that request, its history, and how many rows it had."""
        self._late_at: int | None = None
        """The registry's version when the last request went on because summaries were late."""

    # --- the conversation -------------------------------------------------------------------------------------------

    @property
    def chat(self) -> Conversation:
        """The conversation as it is now."""
        if self._chat is None:
            raise RuntimeError("no conversation yet; begin() gives one")
        return self._chat

    def begin(self, chat: Conversation) -> None:
        """Go on with another conversation: what is being made for the old one comes to nothing."""
        if self._chat is not None:
            self._prefetch.stop()
            self._announcer.withdraw(0, len(self._chat.history), 0.0)
            self._tasks.forget_history()
        self._chat, self._served = chat, None

    def forget(self) -> None:
        """The session has been cleared: what was refused may be asked again, what does not fit is told again."""
        self._tasks.forget_refusals()
        self._server.forget()

    def _is_current(self, chat: Conversation) -> bool:
        """Whether history, view and pins are still those of this conversation."""
        now = self.chat
        return now.history is chat.history and now.view is chat.view and now.steered is chat.steered

    # --- one request ------------------------------------------------------------------------------------------------

    async def rows(self, wanted: Wanted) -> list[JsonRow]:
        """The rows for the next request, within the budget."""
        limits = await self._limits(wanted)
        if wanted.hard_fit and self._served and self._served[:2] == (self.chat.history, len(self.chat.history)):
            # The provider refuses the very request that was served last: it gets a smaller one, whatever we measure.
            chat, limits = await self._ready(Attempt(limits=limits, retained=wanted.retained))
            smaller = max(1, min(limits.budget, self._used(chat, limits) - 1))
            limits = await self._limits(replace(wanted, token_budget=smaller))
        with self._attempt(Attempt(limits=limits, retained=wanted.retained, is_cold=self._is_cold())) as attempt:
            while (due := await self._due(attempt)).step != "go on":
                await self._act(due, attempt)
            if due.plan is not None:
                is_late = attempt.in_vain and bool(due.plan.missing)
                self._late_at = self._tasks.version if is_late else None
                if not is_late:
                    self._withdraw(due, attempt)
        if not self._host.is_cancelled() and self._is_near(self._used(due.chat, due.limits), due.limits):
            self._prefetch.look(due.chat, due.limits)
        return self._serve(due.chat, due.limits)

    async def compact(self, focus: str | None) -> int:
        """Make a compaction now, down to `keep_recent`; the tokens that it saves, as the provider counts.

        It waits as long as it takes, and goes on with what others change in the view meanwhile.
        """
        limits = await self._limits(self._host.limits.last)
        with self._attempt(Attempt(limits=limits, is_manual=True, focus=focus)) as attempt:
            while (due := await self._due(attempt)).step != "go on":
                before = self._used(due.chat, due.limits)
                if await self._act(due, attempt):
                    await self._services.outbox.flush()
                    return before - self._used(self.chat, due.limits)
            self._withdraw(due, attempt)
        await self._services.outbox.flush()
        return 0

    async def tokens(self) -> int:
        """Tokens of the request as it would go out now."""
        system = self._host.system
        if not len(self.chat.history) and not system.text:
            return 0
        await self._resumed(system.text is not None)
        return self._host.meter.correct(self._server.view(self.chat).tokens() + system.tokens + self._retention.tokens)

    # --- its parts --------------------------------------------------------------------------------------------------

    async def _limits(self, wanted: Wanted) -> RequestLimits:
        if not self._host.is_cancelled():
            self._tasks.resume_waiting()
        return await self._host.limits.read(wanted)

    @contextmanager
    def _attempt(self, attempt: Attempt) -> Iterator[Attempt]:
        """Whatever ends an attempt, its waiting is counted."""
        try:
            yield attempt
        finally:
            self._under_way -= attempt.has_begun
            self._services.totals.waited_for(attempt.waited)

    async def _ready(self, attempt: Attempt) -> tuple[Conversation, RequestLimits]:
        """The conversation, resumed, and indexed if a compaction is near or is due; limits beside what is retained."""
        indexed_from = min(self._config.compact_threshold, self._config.prefetch_from or 1.0)
        hides_system = attempt.limits.system_prompt is not None
        while True:
            history = self.chat.history
            await self._resumed(hides_system)
            if self.chat.history is not history:
                continue
            self._retention.update(self.chat, attempt.retained)
            limits = attempt.limits.beside(self._retention.tokens)
            derive_sizes(self.chat, self._config, limits.budget)
            is_near = attempt.is_manual or self._used(self.chat, limits) >= indexed_from * limits.budget
            if is_near and attempt.indexed is not history:
                attempt.indexed = history
                await self.chat.advance()
            if self.chat.history is history:
                return self.chat, limits

    async def _resumed(self, hides_system: bool) -> None:
        """Once per history: take up the longest recorded compaction that matches it, without a provider call."""
        if not self._host.counter.loaded:
            await self._host.counter.load()
        chat = self.chat
        if not chat.adopted:
            found = await self.resumption.find(chat)
            if self.chat.history is chat.history and not self.chat.adopted:
                view = found.view
                self._chat = replace(with_view(chat, view, self._services.count, hides_system), steered=found.steered)
                if found.sizes is not None:
                    start_segments(self.chat, *found.sizes, self._config.fan_in)
                    self._tasks.compacted(view.shown)
                    self._services.totals.from_cache += sum(not shown.summary.fallback for shown in view.shown)
        self._chat = with_prompt(self.chat, self._services.count, hides_system)
        await self.chat.convert()

    def _used(self, chat: Conversation, limits: RequestLimits) -> int:
        """Tokens of the request as it would go out now, as the provider counts."""
        return limits.used(self._server.view(chat).tokens())

    def _is_near(self, used: int, limits: RequestLimits) -> bool:
        """Whether the next compaction's summaries may be made before it is due."""
        threshold, is_automatic = self._config.prefetch_from, self._config.auto_compact and not self.paused
        return threshold is not None and is_automatic and used >= threshold * limits.budget

    def _is_cold(self) -> bool:
        """True if the pause since the last request was longer than the provider's cache lives, and rows have come."""
        if self._served_at is None:
            return False
        at, history, rows = self._served_at
        is_new = history is not self.chat.history or len(self.chat.history) > rows
        return is_new and self._services.clock() - at > _COLD_AFTER

    # --- compactions ------------------------------------------------------------------------------------------------

    async def _due(self, attempt: Attempt) -> Due:
        """What is to be done next, decided for the conversation as it is now."""
        while True:
            chat, limits = await self._ready(attempt)
            case = self._case(chat, limits, attempt)
            if case.reason is None or case.is_answered:
                return Due("go on", None, chat, limits)
            if not attempt.has_begun and case.reason != "cold_cache":
                if not self._under_way:
                    self._tasks.begin()
                attempt.has_begun = True
                self._under_way += 1
            found = await self._planned(chat, limits, partial(decide_for, case))
            if self._is_current(chat):
                return Due(found.step, found.plan, self.chat, limits)

    def _case(self, chat: Conversation, limits: RequestLimits, attempt: Attempt) -> Case:
        """What a decision is made from."""
        config, budget, used = self._config, limits.budget, self._used(chat, limits)
        is_automatic, is_near = config.auto_compact and not self.paused, self._is_near(used, limits)
        # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
        _, served, rows = self._served_at or (0.0, None, 0)
        has_grown = served is chat.history and rows < len(chat.history)
        is_ahead = is_near and has_grown and limits.target is not None
        is_busy = is_ahead and self._prefetch.is_busy(chat)
        return Case(
            used=used,
            budget=budget,
            compact_from=compact_from(chat, config, budget) if is_automatic else math.inf,
            defer_below=patience(config) * budget if is_busy else 0.0,
            is_ahead=is_ahead,
            is_cold=attempt.is_cold and is_near and chat.steered.held_at is None,
            is_manual=attempt.is_manual,
            focus=attempt.focus,
            is_answered=attempt.made is chat.view or (not attempt.is_manual and self._is_answered(chat, limits)),
            in_vain=attempt.in_vain,
            may_fire=self._throttle.may_fire(),
        )

    async def _planned(self, chat: Conversation, limits: RequestLimits, do: Callable[[PlanInput], T]) -> T:
        """What planning comes to; in a thread, on a copy, where the rows are many."""
        given = PlanInput(
            groups=chat.groups,
            builder=chat.builder,
            view=chat.view,
            limits=limits.own,
            pins=tuple(sorted(chat.steered.pins)),
            size_of=self._tasks.size_of,
        )
        if chat.history.characters_from(chat.view.frontier_row) <= LONG:
            return do(given)
        return await asyncio.to_thread(do, given.as_it_is())

    async def _plan_next(self, chat: Conversation, limits: RequestLimits) -> Plan:
        return await self._planned(chat, limits, next_plan)

    async def _act(self, due: Due, attempt: Attempt) -> bool:
        """Do what was decided; True once a compaction has become the view. Whoever calls it decides anew."""
        if due.plan is None:
            return False
        if due.step != "compact":
            await self._fetch(due, due.plan, attempt)
            return False
        view = await self._views.view(due.chat, due.limits, due.plan, due.chat.notes)
        if not self._is_current(due.chat) or len(view.shown) < len(view.nodes):
            return False
        self._commit(due, due.plan, view, attempt)
        # Reminders that it has summarised come back whole, and take room: then there may be another.
        attempt.made = None if self._retention.update(self.chat, attempt.retained) else self.chat.view
        await self.records.write(self.chat)
        return True

    async def _fetch(self, due: Due, plan: Plan, attempt: Attempt) -> None:
        """Get the texts that a plan lacks; where nobody waits any more, fallbacks take the place of the late ones."""
        chat, clock = due.chat, self._services.clock
        self._announcer.announce(plan.reason, due.limits.budget, due.limits.used(plan.tokens_before), len(chat.history))
        await self._services.outbox.flush()
        began = clock()
        if attempt.until is None:
            attempt.until = math.inf if attempt.is_manual else began + self._config.wait_seconds
        left = 0.0 if due.step == "fall back" else max(0.0, attempt.until - began)
        try:
            await self._tasks.get(plan.missing, chat.builder, due.limits.target, None if left == math.inf else left)
        finally:
            attempt.waited += clock() - began
        if due.step == "fall back":
            await self._tasks.place(plan.missing, chat.builder)
        elif self._is_current(chat):
            attempt.in_vain = any(self._tasks.size_of(node) is None for node in plan.missing)

    def _commit(self, due: Due, plan: Plan, view: ViewState, attempt: Attempt) -> None:
        """Swap the view, and tell of it. Nothing is awaited here: all that may fail has been awaited."""
        before, old = self.chat, self._server.view(self.chat)
        view = replace(view, rows_at_compaction=len(before.history))
        before_tokens, before_rows = due.limits.used(old.tokens()), len(old)
        self._prefetch.stop()
        self._late_at = None
        self._chat = compacted(
            before,
            replace(view, rows_at_compaction=len(before.history)),
            self.records.hash_of(before.history, view),
        )
        before.groups.forget_before(view.frontier_row)
        shown_before = {node.place for node in before.view.nodes}
        new = [item for item in view.shown if item.node.place not in shown_before]
        from_cache = sum(self._tasks.is_from_store(item.node.key) for item in new)
        self._tasks.compacted(view.shown)
        self._throttle.fired()
        self._services.totals.compactions += 1
        self._services.totals.from_cache += from_cache
        after = self._server.view(self.chat)
        self._announcer.made(
            Change(
                reason=plan.reason,
                budget=due.limits.budget,
                history_rows=len(before.history),
                before_tokens=before_tokens,
                after_tokens=due.limits.used(after.tokens()),
                before_rows=before_rows,
                after_rows=len(after),
                segments=plan.segments,
                merged=plan.merged,
                from_cache=from_cache,
                fallbacks=sum(item.summary.fallback for item in view.shown),
                level=plan.level,
                waited=attempt.waited,
                new=[item.row["content"] for item in new],
            )
        )

    def _withdraw(self, due: Due, attempt: Attempt) -> None:
        self._announcer.withdraw(self._used(due.chat, due.limits), len(due.chat.history), attempt.waited)

    # --- serving ----------------------------------------------------------------------------------------------------

    def _request(self, chat: Conversation, limits: RequestLimits) -> tuple[object, ...]:
        """What tells one request from the next."""
        return (chat.history, len(chat.history), chat.view, limits.budget, limits.system_prompt)

    def _is_answered(self, chat: Conversation, limits: RequestLimits) -> bool:
        """True for the request that was served last, without news of late summaries: hosts may ask three times."""
        return self._served == self._request(chat, limits) and self._late_at in (None, self._tasks.version)

    def _serve(self, chat: Conversation, limits: RequestLimits) -> list[JsonRow]:
        request = self._request(chat, limits)
        if self._served != request:
            self._served = request
            self._served_at = (self._services.clock(), chat.history, len(chat.history))
            self._throttle.served()
            self._services.totals.requests += 1
        return self._server.rows(chat, limits, self._retention.rows())
