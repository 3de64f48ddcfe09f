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
from context_summarize.session.decide import Case, decide_for
from context_summarize.session.limits import RequestLimits, RequestOptions

_PREFETCH = 2 / 3
"""Share of the size at which the next compaction is due from which on its summaries are made."""
_YOUNG, _PREFETCH_YOUNG = 40, 0.9
"""Rows up to which a session may well stay short, as those of sub-agents do; and the same share for it."""
_COLD_AFTER = 3_600
"""Seconds: no provider's prompt cache, where it is not asked for a longer life, outlives an hour without a request."""
_WINDOW, _MOST_COMPACTIONS = 10, 2
"""If the smallest possible request is still too large, at most two compactions run per ten requests."""


@dataclass(frozen=True, slots=True)
class Look:
    """The conversation as a request sees it; sizes are tokens of the request, as the provider counts."""

    chat: Conversation
    limits: RequestLimits
    """Those of the request, less the rows that stand beside the view."""
    begun: object
    """The builder's: where it has another one now, segments are cut anew, or of another history."""
    used: int
    """The request as it would go out now."""
    due: int
    """From here on the next compaction is due."""
    may_prefetch: bool
    """The summaries of that compaction may be made before it is due."""
    is_near: bool
    """A compaction may be due, or its summaries may be made ahead."""


@dataclass(slots=True)
class Tried:
    """What a request has tried so far."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the host gives it up: then it waits no more."""
    until: float | None = None
    """Time of the clock at which its waiting ends; None before it waits."""
    waited: float = 0.0
    """Seconds."""
    in_vain: bool = False
    """Waiting has not brought what is missing."""
    is_late: bool = False
    """It goes on without what was waited for."""
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
        """Requests that have a compaction due."""

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
        """The rows for the next request, within the budget."""
        tried, given = Tried(self._tasks.stop), await self._host.limits(wanted)
        if wanted.hard_fit and self._last[1:] == (self._current.chat.history, len(self._current.chat.history)):
            # The provider refuses the very request that was served last: it gets a smaller one, whatever we measure.
            seen = await self.look(wanted, given)
            wanted = replace(wanted, token_budget=max(1, min(seen.limits.budget, seen.used - 1)))
            tried, given = Tried(self._tasks.stop), await self._host.limits(wanted)
        seen = await self._carried_out(wanted, given, tried)
        if not self._is_answered(seen):
            self._current.answered = self._request(seen, self._tasks.version if tried.is_late else None)
        served = (seen.chat.history, len(seen.chat.history))
        if self._last[1:] != served:
            self._services.totals.requests += 1
        self._last = (self._services.clock(), *served)
        rows = self._current.server.rows(seen.chat, seen.limits)
        await self._services.outbox.flush()  # before others that flush it are started
        if seen.is_near and seen.may_prefetch and not self._host.is_cancelled():
            target = await self._host.providers.summariser()
            if target is not None:
                await self._current.prefetch.look(seen.chat, seen.limits, target)
        return rows

    async def compact(self, focus: str | None) -> int:
        """Make a compaction now, down to `keep_recent`; the tokens that it saves, as the provider counts.

        It waits as long as it takes, and goes on with what others change in the view meanwhile.
        """
        wanted, tried = replace(self._host.last, is_manual=True, focus=focus), Tried(self._tasks.stop)
        await self._carried_out(wanted, await self._host.limits(wanted), tried)
        await self._services.outbox.flush()
        return tried.saved

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._under_way > 0

    async def look(self, wanted: RequestOptions, given: RequestLimits) -> Look:
        """See the conversation as it is now, beside what is retained; index it where a compaction may be due."""
        retention = self._current.server.retention
        while True:
            chat = await self._current.resumed(hides_system=given.system_prompt is not None)
            if wanted.retained or retention.tokens:
                retention.update(chat, wanted.retained)
            limits = given.beside(retention.tokens) if retention.tokens else given
            rows, used = len(chat.history), limits.used(chat.rows.tokens())
            due = limits.used(limits.own.view_room if chat.is_fresh else limits.own.again_above(chat.left))
            is_young = rows < _YOUNG and not chat.view.compactions
            ahead = due * (_PREFETCH_YOUNG if is_young else _PREFETCH)
            is_near = wanted.is_manual or used >= min(ahead, limits.budget)
            if is_near:
                derive_sizes(chat, self._config, limits.own.base)
                await chat.advance()
            if not is_near or (self._current.chat is chat and len(chat.history) == rows):
                may_prefetch = self._config.prefetch and self._config.auto_compact and used >= ahead
                return Look(chat, limits, chat.builder.begun, used, due, may_prefetch, is_near)

    def _holds(self, seen: Look) -> bool:
        """Whether a plan still holds: of the conversation as it is now, and of its segments."""
        return self._current.is_current(seen.chat) and seen.begun is seen.chat.builder.begun

    def case(self, seen: Look, wanted: RequestOptions, tried: Tried) -> Case:
        """What a decision is made from."""
        chat, limits, is_manual = seen.chat, seen.limits, wanted.is_manual
        at, history, rows = self._last
        # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
        has_grown = history is chat.history and len(history) > rows
        has_provider = self._host.providers.seen(None) is not None
        is_ahead = seen.may_prefetch and has_grown and has_provider and not is_manual
        is_busy = is_ahead and self._current.prefetch.is_busy(chat)
        most = 2 if seen.used > limits.budget and not is_manual else 1
        return Case(
            used=seen.used,
            budget=limits.budget,
            compact_from=seen.due if self._config.auto_compact else math.inf,
            defer_below=limits.used(limits.own.defer_below(chat.left)) if is_busy else 0.0,
            is_ahead=is_ahead,
            is_cold=seen.may_prefetch and self._services.clock() - at > _COLD_AFTER and chat.steered.undone_at is None,
            is_manual=is_manual,
            focus=wanted.focus,
            is_answered=tried.made >= most or (not is_manual and self._is_answered(seen)),
            in_vain=tried.in_vain,
            may_fire=sum(self._services.totals.requests - at < _WINDOW for at in self._made_at) < _MOST_COMPACTIONS,
        )

    def _request(self, seen: Look, late_at: int | None = None) -> tuple[object, ...]:
        """What tells one request from the next. A correction of the measuring is not in it.

        Args:
            late_at: the registry's version, if summaries were late: with those that come, the request is another one.
        """
        chat, limits = seen.chat, seen.limits
        return (chat.history, len(chat.history), chat.view, limits.budget, limits.system_prompt, late_at)

    def _is_answered(self, seen: Look) -> bool:
        """Whether the same request was answered before and nothing is new: hosts may ask three times."""
        return self._current.answered in (self._request(seen), self._request(seen, self._tasks.version))

    async def _carried_out(self, wanted: RequestOptions, given: RequestLimits, tried: Tried) -> Look:
        """Decide, act, and decide again, until the request goes on; what it saw then."""
        begun, first_rows, is_due = None, 0, False
        try:
            while True:
                seen = await self.look(wanted, given)
                if not seen.is_near or (case := self.case(seen, wanted, tried)).goes_on:
                    return seen
                if not is_due and case.reason != "cold_cache":
                    if not self._under_way:
                        self._tasks.begin()
                    is_due = True
                    self._under_way += 1
                chat = seen.chat
                if begun is not seen.begun:
                    begun, first_rows = seen.begun, len(chat.history)
                # Later rows stay verbatim like the newest, or what is waited for would grow.
                limits = seen.limits.keeping(len(chat.history) - first_rows)
                step, plan = await self._current.planned(chat, limits, partial(decide_for, case))
                if not self._holds(seen):
                    continue
                if plan is None or step == "go on":
                    tried.is_late = plan is not None and tried.in_vain and bool(plan.missing)
                    if plan is not None and (wanted.is_manual or not tried.is_late):
                        self._current.announcer.withdraw(seen.used, len(chat.history), tried.waited)
                    return seen
                if step != "compact":
                    await self._fetch(plan, seen, tried, falls_back=step == "fall back")
                elif await self._compact(plan, seen, wanted, tried):
                    begun = None
        finally:  # whatever ends it, its waiting is counted
            self._under_way -= is_due
            if tried.waited:
                self._services.totals.waited(tried.waited)

    async def _fetch(self, plan: Plan, seen: Look, tried: Tried, *, falls_back: bool) -> None:
        """Get the texts that a plan lacks; where nobody waits any more, fallbacks take the place of the late ones."""
        chat, clock = seen.chat, self._services.clock
        self._current.announcer.announce(plan.reason, seen.limits.budget, seen.used, len(chat.history))
        await self._services.outbox.flush()
        target = await self._host.providers.summariser()
        began = clock()
        if tried.until is None:
            tried.until = math.inf if plan.reason == "manual" else began + self._config.wait_seconds
        left = 0.0 if falls_back else max(0.0, tried.until - began)
        try:
            seconds = None if left == math.inf else left
            await self._tasks.get(plan.missing, chat.builder, target, seconds, tried.stop)
        finally:
            tried.waited += clock() - began
        if falls_back:
            await self._tasks.place(plan.missing, chat.builder)
        elif self._holds(seen):
            tried.in_vain = not all(map(self._tasks.is_known, plan.missing))

    async def _compact(self, plan: Plan, seen: Look, wanted: RequestOptions, tried: Tried) -> bool:
        """Make a plan's view, and go on with it; False where others have changed what was planned for."""
        view = await self._current.views.view(seen.chat, plan)
        kept = await self._current.views.kept(seen.chat, view)
        if not self._holds(seen) or len(view.shown) < len(view.nodes):
            return False
        after = self._commit(plan, view, kept, seen.limits, tried)
        # Reminders that it has summarised come back whole, and take room: then there may be another.
        again = self._current.server.retention.update(after, wanted.retained) and not wanted.is_manual
        tried.made += not again
        self._current.answered = None if again else self._request(replace(seen, chat=after))
        await self._current.records.write(after)
        return True

    def _commit(self, plan: Plan, view: ViewState, kept: Kept, limits: RequestLimits, tried: Tried) -> Conversation:
        """Swap the view, and tell of it. Nothing is awaited here: all that may fail has been awaited."""
        current, tasks, before = self._current, self._tasks, self._current.chat
        view = replace(view, rows_at_compaction=len(before.history))
        after = compacted(before, view, current.records.hash_of(before.history, view))
        shown_before = {node.place for node in before.view.nodes}
        new = [item.node for item in view.shown if item.node.place not in shown_before]
        change = Change(
            plan=plan,
            from_cache=sum(tasks.is_from_store(node.key) for node in new),
            fallbacks=sum(item.summary.fallback for item in view.shown),
            shortened=len(view.shortened.keys() - before.view.shortened.keys()),
            values=kept,
            waited=tried.waited,
        )
        tried.saved = current.announcer.made(change, limits, before, after)
        current.prefetch.stop()
        current.chat = after
        before.groups.forget_before(view.frontier_row)
        tasks.compacted(view.shown)
        self._made_at.append(self._services.totals.requests)
        self._services.totals.compactions += 1
        self._services.totals.from_cache += change.from_cache
        return after
