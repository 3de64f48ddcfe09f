"""A request, from its limits to its rows: the conversation is resumed, indexed, compacted where due, and served."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
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
from context_summarize.session.conversation import Conversation, compacted, derive_sizes, with_prompt, with_view
from context_summarize.session.decide import Case, Decision, decide_for
from context_summarize.session.limits import CompactionThrottle, Host, RequestLimits, Wanted, compact_from, patience
from context_summarize.session.operations import Operations
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
    """One request, or one `compact()`: what it wants, what it has seen, and what it has tried."""

    chat: Conversation
    """As it was seen last."""
    limits: RequestLimits
    """Less the rows that stand beside the view."""
    retained: tuple[str, ...] = ()
    beside: int = 0
    """Tokens of these rows, as far as they are off the limits."""
    is_manual: bool = False
    focus: str | None = None
    used: int = 0
    """Tokens of the request as it would go out now, as the provider counts."""
    is_near: bool = False
    """A compaction may be due, or its summaries may be made ahead."""
    indexed: History | None = None
    """Whose segments are cut: those of rows that come meanwhile are the next request's."""
    is_due: bool = False
    """True once a compaction was due."""
    until: float | None = None
    """Time of the clock at which its waiting ends; None before it waits."""
    waited: float = 0.0
    """Seconds."""
    in_vain: bool = False
    """Waiting has not brought what is missing."""
    made: ViewState | None = None
    """The view that its compaction has made: one request makes one, and what comes meanwhile is the next one's."""


class Requests:
    """Holds the conversation and answers requests about it.

    There is no lock: rows, other requests and the user's steering may come during any wait. What was planned before a
    wait is committed only if history, view and pins are still those that it was planned for.
    """

    def __init__(self, services: Services, tasks: SummaryRegistry, host: Host, operations: Operations) -> None:
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
        self.resumption = Resumption(self.records, tasks, self._config)
        self._chat: Conversation | None = None
        self.paused = False
        self._under_way = 0
        """Requests that have a compaction due."""
        self._served: tuple[object, ...] | None = None
        """The request that was served last; a correction of the measuring is not in it."""
        self._served_at: tuple[float, History | None, int] = (0.0, None, 0)
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
        attempt = await self._attempt(wanted)
        if wanted.hard_fit and self._served and self._served[:2] == (self.chat.history, len(self.chat.history)):
            # The provider refuses the very request that was served last: it gets a smaller one, whatever we measure.
            await self._ready(attempt)
            smaller = max(1, min(attempt.limits.budget, attempt.used - 1))
            attempt = await self._attempt(replace(wanted, token_budget=smaller))
        try:
            while (decision := await self._decide(attempt)).step != "go on":
                await self._act(decision, attempt)
        finally:
            self._end(attempt)
        if (plan := decision.plan) is not None:
            is_late = attempt.in_vain and bool(plan.missing)
            self._late_at = self._tasks.version if is_late else None
            if not is_late:
                self._withdraw(attempt)
        if self._may_prefetch(attempt) and not self._host.is_cancelled():
            self._prefetch.look(attempt.chat, attempt.limits)
        return self._serve(attempt)

    async def compact(self, focus: str | None) -> int:
        """Make a compaction now, down to `keep_recent`; the tokens that it saves, as the provider counts.

        It waits as long as it takes, and goes on with what others change in the view meanwhile.
        """
        attempt = await self._attempt(self._host.limits.last)
        attempt.is_manual, attempt.focus = True, focus
        saved = 0
        try:
            while (decision := await self._decide(attempt)).step != "go on":
                before = attempt.used
                if await self._act(decision, attempt):
                    saved = before - attempt.limits.used(self._server.view(self.chat).tokens())
        finally:
            self._end(attempt)
        self._withdraw(attempt)
        await self._services.outbox.flush()
        return saved

    async def tokens(self) -> int:
        """Tokens of the request as it would go out now."""
        system = self._host.system
        if not len(self.chat.history) and not system.text:
            return 0
        await self._resume(system.text is not None)
        return self._host.meter.correct(self._server.view(self.chat).tokens() + system.tokens + self._retention.tokens)

    # --- its parts --------------------------------------------------------------------------------------------------

    async def _attempt(self, wanted: Wanted) -> Attempt:
        if not self._host.is_cancelled():
            self._tasks.resume_waiting()
        return Attempt(chat=self.chat, limits=await self._host.limits.read(wanted), retained=wanted.retained)

    def _end(self, attempt: Attempt) -> None:
        """Whatever ends an attempt, its waiting is counted."""
        self._under_way -= attempt.is_due
        if attempt.waited:
            self._services.totals.waited_for(attempt.waited)

    async def _ready(self, attempt: Attempt) -> None:
        """See the conversation as it is now: resumed, beside what is retained, indexed if a compaction may be due."""
        indexed_from = min(self._config.compact_threshold, self._config.prefetch_from or 1.0)
        limits = attempt.limits
        while True:
            history = self.chat.history
            await self._resume(limits.system_prompt is not None, limits.own.own_budget)
            if (chat := self.chat).history is not history:
                continue
            if attempt.retained or self._retention.tokens:
                self._retention.update(chat, attempt.retained)
                limits = limits.beside(self._retention.tokens - attempt.beside)
                attempt.beside = self._retention.tokens
            derive_sizes(chat, self._config, limits.budget)
            attempt.used = limits.used(self._server.view(chat).tokens())
            attempt.chat, attempt.limits = chat, limits
            attempt.is_near = attempt.is_manual or attempt.used >= indexed_from * limits.budget
            if not attempt.is_near or attempt.indexed is history:
                return
            attempt.indexed = history
            await chat.advance()

    async def _resume(self, hides_system: bool, own_budget: int | None = None) -> None:
        """Once per history: take up the longest recorded compaction that matches it, without a provider call."""
        if not self._host.counter.loaded:
            await self._host.counter.load()
        chat = self.chat
        if not chat.adopted:
            found = await self.resumption.find(chat, own_budget, lambda: self._is_waiting_for_a_record(chat))
            if found is not None and self._is_waiting_for_a_record(chat):
                view = found.view
                self._chat = replace(with_view(chat, view, self._services.count, hides_system), steered=found.steered)
                if found.record is not None:
                    self.resumption.cut(self.chat, found.record)
                    self._tasks.compacted(view.shown)
                    self._services.totals.from_cache += sum(not shown.summary.fallback for shown in view.shown)
        if self.chat.groups.hides_system != hides_system:
            self._chat = with_prompt(self.chat, self._services.count, hides_system)
        await self.chat.convert()

    def _is_waiting_for_a_record(self, chat: Conversation) -> bool:
        return self.chat.history is chat.history and not self.chat.adopted

    # --- compactions ------------------------------------------------------------------------------------------------

    async def _decide(self, attempt: Attempt) -> Decision:
        """What is to be done next, decided for the conversation as it is now."""
        while True:
            await self._ready(attempt)
            if not attempt.is_near:
                return Decision("go on")
            case = self._case(attempt)
            if case.reason is None or case.is_answered:
                return Decision("go on")
            if not attempt.is_due and case.reason != "cold_cache":
                if not self._under_way:
                    self._tasks.begin()
                attempt.is_due = True
                self._under_way += 1
            decision = await self._planned(attempt.chat, attempt.limits, partial(decide_for, case))
            if self._is_current(attempt.chat):
                return decision

    def _case(self, attempt: Attempt) -> Case:
        """What a decision is made from."""
        chat, limits, config = attempt.chat, attempt.limits, self._config
        at, history, rows = self._served_at
        may_prefetch = self._may_prefetch(attempt)
        # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
        has_grown = history is chat.history and len(chat.history) > rows
        is_ahead = may_prefetch and has_grown and limits.target is not None
        is_busy = is_ahead and self._prefetch.is_busy(chat)
        is_new = history is not None and (has_grown or history is not chat.history)
        is_cold = is_new and self._services.clock() - at > _COLD_AFTER and chat.steered.held_at is None
        is_same = self._served == self._request(attempt) and self._late_at in (None, self._tasks.version)
        is_automatic = config.auto_compact and not self.paused
        return Case(
            used=attempt.used,
            budget=limits.budget,
            compact_from=compact_from(chat, config, limits.budget) if is_automatic else math.inf,
            defer_below=patience(config) * limits.budget if is_busy else 0.0,
            is_ahead=is_ahead,
            is_cold=is_cold and may_prefetch,
            is_manual=attempt.is_manual,
            focus=attempt.focus,
            is_answered=attempt.made is chat.view or (is_same and not attempt.is_manual),
            in_vain=attempt.in_vain,
            may_fire=self._throttle.may_fire(),
        )

    def _may_prefetch(self, attempt: Attempt) -> bool:
        """Whether the next compaction's summaries may be made before it is due."""
        threshold, is_automatic = self._config.prefetch_from, self._config.auto_compact and not self.paused
        return threshold is not None and is_automatic and attempt.used >= threshold * attempt.limits.budget

    async def _planned(self, chat: Conversation, limits: RequestLimits, do: Callable[[PlanInput], T]) -> T:
        """What planning comes to; in a thread, on a copy, where the rows are many."""
        given = PlanInput(
            builder=chat.builder,
            groups=chat.groups,
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

    async def _act(self, decision: Decision, attempt: Attempt) -> bool:
        """Do what was decided; True once a compaction has become the view. Whoever calls it decides anew."""
        if (plan := decision.plan) is None:
            return False
        if decision.step != "compact":
            await self._fetch(plan, attempt, falls_back=decision.step == "fall back")
            return False
        view = await self._views.view(attempt.chat, attempt.limits, plan, attempt.chat.notes)
        if not self._is_current(attempt.chat) or len(view.shown) < len(view.nodes):
            return False
        self._commit(plan, view, attempt)
        # Reminders that it has summarised come back whole, and take room: then there may be another.
        attempt.made = None if self._retention.update(self.chat, attempt.retained) else self.chat.view
        await self.records.write(self.chat)
        return True

    async def _fetch(self, plan: Plan, attempt: Attempt, *, falls_back: bool) -> None:
        """Get the texts that a plan lacks; where nobody waits any more, fallbacks take the place of the late ones."""
        chat, clock = attempt.chat, self._services.clock
        self._announcer.announce(plan.reason, attempt.limits.budget, attempt.used, len(chat.history))
        await self._services.outbox.flush()
        began = clock()
        if attempt.until is None:
            attempt.until = math.inf if attempt.is_manual else began + self._config.wait_seconds
        left = 0.0 if falls_back else max(0.0, attempt.until - began)
        target, seconds = attempt.limits.target, None if left == math.inf else left
        try:
            await self._tasks.get(plan.missing, chat.builder, target, seconds)
        finally:
            attempt.waited += clock() - began
        if falls_back:
            await self._tasks.place(plan.missing, chat.builder)
        elif self._is_current(chat):
            attempt.in_vain = any(self._tasks.size_of(node) is None for node in plan.missing)

    def _commit(self, plan: Plan, view: ViewState, attempt: Attempt) -> None:
        """Swap the view, and tell of it. Nothing is awaited here: all that may fail has been awaited."""
        before, limits, old = self.chat, attempt.limits, self._server.view(self.chat)
        before_tokens, before_rows = limits.used(old.tokens()), len(old)
        self._prefetch.stop()
        self._late_at = None
        view = replace(view, rows_at_compaction=len(before.history))
        self._chat = compacted(before, view, self.records.hash_of(before.history, view))
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
                budget=limits.budget,
                history_rows=len(before.history),
                before_tokens=before_tokens,
                after_tokens=limits.used(after.tokens()),
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

    def _withdraw(self, attempt: Attempt) -> None:
        self._announcer.withdraw(attempt.used, len(attempt.chat.history), attempt.waited)

    # --- serving ----------------------------------------------------------------------------------------------------

    def _request(self, attempt: Attempt) -> tuple[object, ...]:
        """What tells one request from the next."""
        chat, limits = attempt.chat, attempt.limits
        return (chat.history, len(chat.history), chat.view, limits.budget, limits.system_prompt)

    def _serve(self, attempt: Attempt) -> list[JsonRow]:
        request, history = self._request(attempt), attempt.chat.history
        if self._served != request:
            self._served = request
            self._served_at = (self._services.clock(), history, len(history))
            self._throttle.served()
            self._services.totals.requests += 1
        return self._server.rows(attempt.chat, attempt.limits, self._retention.rows())
