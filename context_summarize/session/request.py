"""A request, from its limits to its rows: the conversation is resumed, indexed, compacted where due, and served."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from context_summarize.background import LONG
from context_summarize.core.history import History
from context_summarize.core.plan import Plan, next_plan
from context_summarize.core.view_size import PlanInput
from context_summarize.core.view_state import ViewState
from context_summarize.messages.rows import JsonRow
from context_summarize.session.announcing import Change
from context_summarize.session.compaction import ViewMaker
from context_summarize.session.conversation import Conversation, compacted
from context_summarize.session.current import Attempt, Current
from context_summarize.session.decide import Case, Decision, decide_for
from context_summarize.session.limits import CompactionThrottle, Host, RequestLimits, RequestOptions
from context_summarize.session.prefetch import Prefetch
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

T = TypeVar("T")

_COLD_AFTER = 3_600
"""Seconds: no provider's prompt cache, where it is not asked for a longer life, outlives an hour without a request."""


class Requests(Current):
    """Answers requests: each decides, and acts on it, until it goes on."""

    def __init__(
        self, services: Services, tasks: SummaryRegistry, host: Host, operations: Callable[[], tuple[str, ...]]
    ) -> None:
        super().__init__(services, tasks, host)
        self._views = ViewMaker(services, tasks, operations)
        self._throttle = CompactionThrottle()
        self._prefetch = Prefetch(tasks, services.outbox, self._plan_next)
        self._served_at: tuple[float, History | None, int] = (0.0, None, 0)
        """Seconds of the clock at that request, its history, and how many rows it had."""
        self._made_for: tuple[object, ...] | None = None
        """The request that the last compaction was made for: another that is the same needs none of its own."""
        self._late_at: int | None = None
        """The registry's version when the last request went on because summaries were late."""

    def begin(self, chat: Conversation) -> None:
        """Go on with another conversation: what is being made for the old one comes to nothing."""
        self._prefetch.stop()
        super().begin(chat)

    # --- one request ------------------------------------------------------------------------------------------------

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
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
        rows = self._serve(attempt)
        if attempt.is_near and self._may_prefetch(attempt) and not self._host.is_cancelled():
            await self._prefetch.look(attempt.chat, attempt.limits)
        return rows

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
                    break  # another would undo what the user has done while the record was written
        finally:
            self._end(attempt)
        self._withdraw(attempt)
        await self._services.outbox.flush()
        return saved

    # --- compactions ------------------------------------------------------------------------------------------------

    async def _decide(self, attempt: Attempt) -> Decision:
        """What is to be done next, decided for the conversation as it is now."""
        while True:
            await self._ready(attempt)
            if not attempt.is_near:
                return Decision("go on")
            if attempt.is_overtaken:
                attempt.made, attempt.indexed, attempt.is_second = None, None, True
                continue
            case = self._case(attempt)
            if case.reason is None or case.is_answered:
                return Decision("go on")
            if not attempt.is_due and case.reason != "cold_cache":
                if not self._under_way:
                    self._tasks.begin()
                attempt.is_due = True
                self._under_way += 1
            limits = attempt.limits.keeping(len(attempt.chat.history) - attempt.rows)
            decision = await self._planned(attempt.chat, limits, partial(decide_for, case))
            if self._holds(attempt):
                return decision

    def _case(self, attempt: Attempt) -> Case:
        """What a decision is made from."""
        chat, limits, config = attempt.chat, attempt.limits, self._config
        at, history, rows = self._served_at
        may_prefetch = self._may_prefetch(attempt)
        # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
        has_grown = history is chat.history and len(chat.history) > rows
        is_ahead = may_prefetch and has_grown and limits.target is not None and not attempt.is_manual
        is_busy = is_ahead and self._prefetch.is_busy(chat)
        is_new = history is not None and (has_grown or history is not chat.history)
        is_cold = is_new and self._services.clock() - at > _COLD_AFTER and chat.steered.undone_at is None
        is_same = self._served == self._request(attempt) and self._late_at in (None, self._tasks.version)
        is_same = is_same or self._made_for == self._request(attempt)
        return Case(
            used=attempt.used,
            budget=limits.budget,
            compact_from=attempt.due if config.auto_compact else math.inf,
            defer_below=self.defer_below(limits) if is_busy else 0.0,
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
        config = self._config
        return config.prefetch and config.auto_compact and attempt.used >= attempt.ahead

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
        if not self._holds(attempt) or len(view.shown) < len(view.nodes):
            return False
        self._commit(plan, view, attempt)
        # Reminders that it has summarised come back whole, and take room: then there may be another.
        again = self._retention.update(self.chat, attempt.retained) and not attempt.is_manual
        attempt.made = None if again else self.chat.view
        attempt.chat = self.chat
        self._made_for = None if again else self._request(attempt)
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
        elif self._holds(attempt):
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
        new = [item.node for item in view.shown if item.node.place not in shown_before]
        from_cache = sum(self._tasks.is_from_store(node.key) for node in new)
        self._tasks.compacted(view.shown)
        self._throttle.fired()
        self._services.totals.compactions += 1
        self._services.totals.from_cache += from_cache
        after = self._server.view(self.chat)
        self._announcer.made(
            Change(
                reason=plan.reason,
                budget=limits.budget,
                target_tokens=limits.used(limits.own.target_room),
                history_rows=len(before.history),
                before_tokens=before_tokens,
                after_tokens=limits.used(after.tokens()),
                before_rows=before_rows,
                after_rows=len(after),
                segments=plan.segments,
                merged=plan.merged,
                from_cache=from_cache,
                shortened=len(view.shortened.keys() - before.view.shortened.keys()),
                fallbacks=sum(item.summary.fallback for item in view.shown),
                level=plan.level,
                waited=attempt.waited,
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
        retained = self._retention.rows() if self._retention.tokens else ()
        return self._server.rows(attempt.chat, attempt.limits, retained)
