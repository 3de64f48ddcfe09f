"""A request, from its limits to its rows: the conversation is seen as it is, compacted where due, and served."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial

from context_summarize.core.history import History
from context_summarize.core.notes_log import Kept
from context_summarize.core.plan import Plan
from context_summarize.core.view_state import ViewState
from context_summarize.messages.rows import JsonRow
from context_summarize.session.compaction import Change
from context_summarize.session.conversation import Conversation, compacted, derive_sizes
from context_summarize.session.current import Current
from context_summarize.session.decide import Case, Step, decide_for
from context_summarize.session.limits import RequestLimits, RequestOptions

_PREFETCH = 2 / 3
"""Share of the size at which the next compaction is due from which on its summaries are made."""
_YOUNG, _PREFETCH_YOUNG = 40, 0.9
"""Rows up to which a session may well stay short, as those of sub-agents do; and the same share for it."""
_COLD_AFTER = 3_600
"""Seconds: no provider's prompt cache, where it is not asked for a longer life, outlives an hour without a request."""
_WINDOW, _MOST_COMPACTIONS = 10, 2
"""If the smallest possible request is still too large, at most two compactions run per ten requests."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One request, or one `compact()`: what it wants, what it has seen, and what it has tried."""

    given: RequestLimits
    retained: tuple[str, ...] = ()
    is_manual: bool = False
    focus: str | None = None
    stop: asyncio.Event
    """Set once the host gives it up: then it waits no more."""
    chat: Conversation = field(init=False)
    """As it was seen last."""
    limits: RequestLimits = field(init=False)
    """Those given, less the rows that stand beside the view."""
    used: int = 0
    """Tokens of the request as it would go out now, as the provider counts."""
    due: int = 0
    """Tokens of the request at which the next compaction is due."""
    ahead: float = 0.0
    """Tokens of the request from which on the summaries of that compaction are made."""
    is_near: bool = False
    """A compaction may be due, or its summaries may be made ahead."""
    begun: object | None = None
    """The builder's, when it was looked at first: else segments are cut anew, or of another history."""
    rows: int = 0
    """Of the history then: later ones stay verbatim like the newest, or what is waited for would grow."""
    is_answered: bool = False
    """The same request was answered before, and nothing is new: hosts may ask three times."""
    is_due: bool = False
    """True once a compaction was due."""
    until: float | None = None
    """Time of the clock at which its waiting ends; None before it waits."""
    waited: float = 0.0
    """Seconds."""
    in_vain: bool = False
    """Waiting has not brought what is missing."""
    made: int = 0
    """Compactions: one, and another only where rows that came meanwhile do not fit."""
    saved: int = 0
    """Tokens that the last of them has saved, as the provider counts."""


class Requests:
    """Answers requests: each decides, and acts on it, until it goes on."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._services, self._config, self._host = current.services, current.services.config, current.host
        self._tasks = current.tasks
        self._made_at: deque[int] = deque(maxlen=_MOST_COMPACTIONS)
        """How many requests had been served at each of the last compactions."""
        self._last: tuple[float, History | None, int] = (math.inf, None, 0)
        """When the last request was served, by the clock; its history, and how many rows it had."""
        self._under_way = 0
        """Attempts that have a compaction due."""

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
        """The rows for the next request, within the budget."""
        attempt = await self.attempt(wanted)
        if wanted.hard_fit and self._last[1:] == (self._current.chat.history, len(self._current.chat.history)):
            # The provider refuses the very request that was served last: it gets a smaller one, whatever we measure.
            await self.look(attempt)
            smaller = max(1, min(attempt.limits.budget, attempt.used - 1))
            attempt = await self.attempt(replace(wanted, token_budget=smaller))
        plan = await self._carried_out(attempt)
        is_late = plan is not None and attempt.in_vain and bool(plan.missing)
        if plan is not None and not is_late:
            self._withdraw(attempt)
        if not attempt.is_answered:
            self._current.answered = self._request(attempt, self._tasks.version if is_late else None)
        history, before = attempt.chat.history, self._last
        self._last = (self._services.clock(), history, len(history))
        self._services.totals.requests += self._last[1:] != before[1:]
        rows = self._current.server.rows(attempt.chat, attempt.limits)
        await self._services.outbox.flush()  # before others that flush it are started
        if attempt.is_near and self._may_prefetch(attempt) and not self._host.is_cancelled():
            target = await self._host.providers.summariser()
            if target is not None:
                await self._current.prefetch.look(attempt.chat, attempt.limits, target)
        return rows

    async def compact(self, focus: str | None) -> int:
        """Make a compaction now, down to `keep_recent`; the tokens that it saves, as the provider counts.

        It waits as long as it takes, and goes on with what others change in the view meanwhile.
        """
        attempt = await self.attempt(self._host.last, is_manual=True, focus=focus)
        await self._carried_out(attempt)
        self._withdraw(attempt)
        await self._services.outbox.flush()
        return attempt.saved

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._under_way > 0

    async def attempt(self, wanted: RequestOptions, *, is_manual: bool = False, focus: str | None = None) -> Attempt:
        """A request with its limits. It has seen nothing yet."""
        stop, limits = self._tasks.stop, await self._host.limits(wanted)
        return Attempt(given=limits, retained=wanted.retained, is_manual=is_manual, focus=focus, stop=stop)

    async def look(self, attempt: Attempt) -> None:
        """See the conversation as it is now, beside what is retained; index it where a compaction may be due."""
        retention = self._current.server.retention
        while True:
            chat = await self._current.resumed(hides_system=attempt.given.system_prompt is not None)
            if attempt.retained or retention.tokens:
                retention.update(chat, attempt.retained)
            limits = attempt.given.beside(retention.tokens) if retention.tokens else attempt.given
            attempt.chat, attempt.limits, rows = chat, limits, len(chat.history)
            attempt.used = limits.used(chat.rows.tokens())
            attempt.due = limits.used(limits.own.again_above(max(chat.rows.left, chat.steered.undone_at or 0)))
            is_young = rows < _YOUNG and not chat.view.compactions
            attempt.ahead = attempt.due * (_PREFETCH_YOUNG if is_young else _PREFETCH)
            attempt.is_near = attempt.is_manual or attempt.used >= min(attempt.ahead, limits.budget)
            if not attempt.is_near:
                return
            derive_sizes(chat, self._config, limits.budget)
            await chat.advance()
            if attempt.begun is not chat.builder.begun:
                attempt.begun, attempt.rows = chat.builder.begun, rows
            if self._current.chat is chat and len(chat.history) == rows:
                return

    def _holds(self, attempt: Attempt) -> bool:
        """Whether a plan of this attempt still holds: of the conversation as it is now, and of its segments."""
        return self._current.is_current(attempt.chat) and attempt.begun is attempt.chat.builder.begun

    def case(self, attempt: Attempt) -> Case:
        """What a decision is made from."""
        chat, limits, config = attempt.chat, attempt.limits, self._config
        at, history, rows = self._last
        may_prefetch = self._may_prefetch(attempt)
        # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
        has_grown = history is chat.history and len(history) > rows
        has_provider = self._host.providers.seen(None) is not None
        is_ahead = may_prefetch and has_grown and has_provider and not attempt.is_manual
        is_busy = is_ahead and self._current.prefetch.is_busy(chat)
        attempt.is_answered = self._is_answered(attempt)
        most = 2 if attempt.used > limits.budget and not attempt.is_manual else 1
        return Case(
            used=attempt.used,
            budget=limits.budget,
            compact_from=attempt.due if config.auto_compact else math.inf,
            defer_below=self.defer_below(chat, limits) if is_busy else 0.0,
            is_ahead=is_ahead,
            is_cold=may_prefetch and self._services.clock() - at > _COLD_AFTER and chat.steered.undone_at is None,
            is_manual=attempt.is_manual,
            focus=attempt.focus,
            is_answered=attempt.made >= most or (attempt.is_answered and not attempt.is_manual),
            in_vain=attempt.in_vain,
            may_fire=sum(self._services.totals.requests - at < _WINDOW for at in self._made_at) < _MOST_COMPACTIONS,
        )

    def defer_below(self, chat: Conversation, limits: RequestLimits) -> int:
        """Tokens of a request below which the next compaction may wait for its summaries, as the provider counts."""
        return limits.used(limits.own.defer_below(max(chat.rows.left, chat.steered.undone_at or 0)))

    def _may_prefetch(self, attempt: Attempt) -> bool:
        """Whether the next compaction's summaries may be made before it is due."""
        config = self._config
        return config.prefetch and config.auto_compact and attempt.used >= attempt.ahead

    def _request(self, attempt: Attempt, late_at: int | None = None) -> tuple[object, ...]:
        """What tells one request from the next. A correction of the measuring is not in it.

        Args:
            late_at: the registry's version, if summaries were late: with those that come, the request is another one.
        """
        chat, limits = attempt.chat, attempt.limits
        return (chat.history, len(chat.history), chat.view, limits.budget, limits.system_prompt, late_at)

    def _is_answered(self, attempt: Attempt) -> bool:
        """Whether the same request was answered before and nothing is new: hosts may ask three times."""
        return self._current.answered in (self._request(attempt), self._request(attempt, self._tasks.version))

    async def _carried_out(self, attempt: Attempt) -> Plan | None:
        """Decide, act, and decide again, until the request goes on; the last plan, if one was made."""
        try:
            while True:
                await self.look(attempt)
                if not attempt.is_near or (case := self.case(attempt)).goes_on:
                    return None
                if not attempt.is_due and case.reason != "cold_cache":
                    if not self._under_way:
                        self._tasks.begin()
                    attempt.is_due = True
                    self._under_way += 1
                limits = attempt.limits.keeping(len(attempt.chat.history) - attempt.rows)
                decision = await self._current.planned(attempt.chat, limits, partial(decide_for, case))
                if not self._holds(attempt):
                    continue
                if decision.step == "go on" or decision.plan is None:
                    return decision.plan
                await self._act(decision.step, decision.plan, attempt)
        finally:  # whatever ends it, its waiting is counted
            self._under_way -= attempt.is_due
            if attempt.waited:
                self._services.totals.waited(attempt.waited)

    async def _act(self, step: Step, plan: Plan, attempt: Attempt) -> None:
        """Do what was decided. Whoever calls it decides anew."""
        if step != "compact":
            await self._fetch(plan, attempt, falls_back=step == "fall back")
            return
        view = await self._current.views.view(attempt.chat, plan)
        kept = await self._current.views.kept(attempt.chat, view)
        if not self._holds(attempt) or len(view.shown) < len(view.nodes):
            return
        self._commit(plan, view, kept, attempt)
        await self._current.records.write(attempt.chat)

    async def _fetch(self, plan: Plan, attempt: Attempt, *, falls_back: bool) -> None:
        """Get the texts that a plan lacks; where nobody waits any more, fallbacks take the place of the late ones."""
        chat, clock = attempt.chat, self._services.clock
        self._current.announcer.announce(plan.reason, attempt.limits.budget, attempt.used, len(chat.history))
        await self._services.outbox.flush()
        target = await self._host.providers.summariser()
        began = clock()
        if attempt.until is None:
            attempt.until = math.inf if attempt.is_manual else began + self._config.wait_seconds
        left = 0.0 if falls_back else max(0.0, attempt.until - began)
        try:
            seconds = None if left == math.inf else left
            await self._tasks.get(plan.missing, chat.builder, target, seconds, attempt.stop)
        finally:
            attempt.waited += clock() - began
        if falls_back:
            await self._tasks.place(plan.missing, chat.builder)
        elif self._holds(attempt):
            attempt.in_vain = not all(map(self._tasks.is_known, plan.missing))

    def _commit(self, plan: Plan, view: ViewState, kept: Kept, attempt: Attempt) -> None:
        """Swap the view, and tell of it. Nothing is awaited here: all that may fail has been awaited."""
        current, tasks, before, limits = self._current, self._tasks, self._current.chat, attempt.limits
        view = replace(view, rows_at_compaction=len(before.history))
        after = compacted(before, view, current.records.hash_of(before.history, view))
        shown_before = {node.place for node in before.view.nodes}
        new = [item.node for item in view.shown if item.node.place not in shown_before]
        change = Change(
            reason=plan.reason,
            before_tokens=limits.used(before.rows.tokens()),
            after_tokens=limits.used(after.rows.tokens()),
            after_rows=len(after.rows),
            segments=plan.segments,
            merged=plan.merged,
            from_cache=sum(tasks.is_from_store(node.key) for node in new),
            shortened=len(view.shortened.keys() - before.view.shortened.keys()),
            values=kept,
            fallbacks=sum(item.summary.fallback for item in view.shown),
            level=plan.level,
            waited=attempt.waited,
        )
        current.prefetch.stop()
        current.chat = attempt.chat = after
        before.groups.forget_before(view.frontier_row)
        tasks.compacted(view.shown)
        self._made_at.append(self._services.totals.requests)
        self._services.totals.compactions += 1
        self._services.totals.from_cache += change.from_cache
        current.announcer.made(change, limits, before)
        attempt.saved, attempt.begun = change.before_tokens - change.after_tokens, None
        # Reminders that it has summarised come back whole, and take room: then there may be another.
        again = current.server.retention.update(after, attempt.retained) and not attempt.is_manual
        attempt.made += not again
        current.answered = None if again else self._request(attempt)

    def _withdraw(self, attempt: Attempt) -> None:
        self._current.announcer.withdraw(attempt.used, len(attempt.chat.history), attempt.waited)
