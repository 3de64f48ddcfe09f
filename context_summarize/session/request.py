"""A request, from its limits to its rows: the conversation is seen as it is, compacted where due, and served."""

from __future__ import annotations

import math
from dataclasses import replace

from context_summarize.background import in_thread
from context_summarize.core.log import Log
from context_summarize.core.render import Rendering, shorten_ahead, to_shorten
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.messages.view_rows import continues
from context_summarize.session.compaction import Compactions
from context_summarize.session.conversation import Conversation
from context_summarize.session.current import Current
from context_summarize.session.decide import Case, Look, Tried, decide_for
from context_summarize.session.request_limits import RequestLimits, RequestOptions

_PREFETCH = 2 / 3
"""Share of the size at which the next compaction is due from which on its summaries are made."""
_YOUNG, _PREFETCH_YOUNG = 40, 0.9
"""Rows up to which a session may well stay short, as those of sub-agents do; and the same share for it."""
_COLD_AFTER = 3_600
"""Seconds: no provider's prompt cache, where it is not asked for a longer life, outlives an hour without a request."""


class Requests:
    """Answers requests: each decides, and acts on it, until it goes on."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._services, self._config, self._host = current.services, current.services.config, current.host
        self._tasks = current.tasks
        self.compactions = Compactions(current)
        self._last: tuple[float, Log | None, int] = (math.inf, None, 0)
        """When the last request was served, by the clock; its history, and how many rows it had."""
        self._under_way = 0
        """Requests that have a compaction due."""

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
        """Returns the rows for the next request, within the budget."""
        tried, given = Tried(self._tasks.stop), await self._host.limits(wanted)
        if wanted.hard_fit and self._last[1:] == (self._current.chat.log, len(self._current.chat.log)):
            # The provider refuses the very request that was served last: it gets a smaller one, whatever we measure.
            seen = await self.look(wanted, given)
            wanted = replace(wanted, token_budget=max(1, min(seen.limits.budget, seen.used - 1)))
            tried, given = Tried(self._tasks.stop), await self._host.limits(wanted)
        seen = await self._carried_out(wanted, given, tried)
        if not self._is_answered(seen):
            self._current.answered = self._request(seen, self._tasks.version if tried.is_late else None)
        served = (seen.chat.log, len(seen.chat.log))
        if self._last[1:] != served:
            self._services.totals.requests += 1
        self._last = (self._services.clock(), *served)
        rows = self._served(seen.rendering, seen.limits)
        await self._services.outbox.flush()  # before others that flush it are started
        if seen.is_near and seen.may_prefetch and not self._host.is_cancelled():
            target = await self._host.mounts.summariser()
            if target is not None:
                self._current.prefetch.look(seen.chat, seen.limits, target)
        return rows

    def _served(self, view: Rendering, limits: RequestLimits) -> list[JsonRow]:
        """Returns copies of the view's rows, with reminders that the host wants whole and the prompt's status block."""
        size, retention = view.tokens, self._current.retention
        self._current.announcer.fits(view, limits, limits.used(size))
        rows = view.rows(limits.system_prompt)
        apart, may_chain = limits.own.system_tokens, any(map(continues, reversed(rows)))
        sent = size + apart + retention.tokens
        self._host.meter.served(sent, system=view.system_tokens + apart, may_chain=may_chain)
        if limits.status is not None:
            rows.insert(len(rows) - len(view.open), limits.status)
        if retention.tokens:
            at = len(view.head) + bool(limits.system_prompt)
            rows[at:at] = map(copy_json, retention.held)
        return rows

    async def compact(self, focus: str | None) -> int:
        """Makes a compaction now, down to `keep_recent`; the tokens that it saves, as the provider counts.

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
        """Returns the conversation as it is now, with its segments cut where a compaction may be due."""
        retention = self._current.retention
        while True:
            chat = await self._current.resumed(hides_system=given.system_prompt is not None)
            if wanted.retained or retention.tokens:
                retention.update(chat, wanted.retained)
            limits = given.beside(retention.tokens) if retention.tokens else given
            rendering = chat.rendering()
            rows, used = len(chat.log), limits.used(rendering.tokens)
            own, left = limits.own, chat.left(rendering)
            due = limits.used(own.full_at(left) if chat.is_fresh else own.again_above(left))
            is_young = rows < _YOUNG and not chat.view.compactions
            ahead = due * (_PREFETCH_YOUNG if is_young else _PREFETCH)
            is_near = wanted.is_manual or used >= min(ahead, limits.budget)
            if is_near:
                chat = self._current.chat = chat.cut_for(limits.own.base, self._config, self._current.cutting)
                if chat.segments is not None:
                    await in_thread(chat.segments.backlog(), chat.segments.render_ahead)
                    chat.segments.take_in()
                long = to_shorten(chat.log, chat.view, own)
                await in_thread(4 * sum(entry.tokens for entry in long), shorten_ahead, chat.log, long, own)
            if not is_near or (self._current.chat is chat and len(chat.log) == rows):
                may_prefetch = self._config.prefetch and self._config.auto_compact and used >= ahead
                return Look(chat, limits, rendering, used, due, may_prefetch, is_near)

    def case(self, seen: Look, wanted: RequestOptions, tried: Tried) -> Case:
        """Returns the facts of a decision."""
        chat, limits, is_manual = seen.chat, seen.limits, wanted.is_manual
        at, history, rows = self._last
        # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
        has_grown = history is chat.log and len(history) > rows
        has_provider = self._host.mounts.seen(None) is not None
        is_ahead = seen.may_prefetch and has_grown and has_provider and not is_manual
        is_busy = is_ahead and self._current.prefetch.is_busy(chat)
        most = 2 if seen.used > limits.budget and not is_manual else 1
        return Case(
            used=seen.used,
            budget=limits.budget,
            compact_from=seen.due if self._config.auto_compact else math.inf,
            defer_below=limits.used(limits.own.defer_below(chat.left(seen.rendering))) if is_busy else 0.0,
            is_ahead=is_ahead,
            is_cold=seen.may_prefetch and self._services.clock() - at > _COLD_AFTER and chat.steered.undone_at is None,
            is_manual=is_manual,
            focus=wanted.focus,
            is_answered=tried.made >= most or (not is_manual and self._is_answered(seen)),
            in_vain=tried.in_vain,
            may_fire=self.compactions.may_fire(),
        )

    def _request(self, seen: Look, late_at: int | None = None) -> tuple[object, ...]:
        """Returns what distinguishes a request from the next one. A correction of the measuring is not in it.

        Args:
            late_at: the registry's version, if summaries were late: with those that come, the request is another one.
        """
        chat, limits = seen.chat, seen.limits
        return (chat.log, len(chat.log), chat.view, limits.budget, limits.system_prompt, late_at)

    def _is_answered(self, seen: Look) -> bool:
        """Returns True if the same request was answered before and nothing is new: hosts may ask three times."""
        return self._current.answered in (self._request(seen), self._request(seen, self._tasks.version))

    async def _carried_out(self, wanted: RequestOptions, given: RequestLimits, tried: Tried) -> Look:
        """Decides and acts, again and again, until the request goes on; returns what it saw then."""
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
                if begun is not chat.segments:
                    begun, first_rows = chat.segments, len(chat.log)
                # Later rows stay verbatim like the newest, or what is waited for would grow.
                limits = seen.limits.keeping(len(chat.log) - first_rows)
                step, plan = decide_for(case, self._current.plan_input(chat, limits))
                if plan is None or step == "go on":
                    tried.is_late = plan is not None and tried.in_vain and bool(plan.missing)
                    if plan is not None and (wanted.is_manual or not tried.is_late):
                        self._current.announcer.withdraw(seen.used, len(chat.log), tried.waited)
                    return seen
                if step != "compact":
                    await self.compactions.fetch(plan, seen, tried, falls_back=step == "fall back")
                elif (after := await self.compactions.make(plan, seen, tried)) is not None:
                    begun = None
                    await self._go_on(after, seen, wanted, tried)
        finally:  # whatever ends it, its waiting is counted
            if is_due:
                self._under_way -= 1
            if tried.waited:
                self._services.totals.waited(tried.waited)

    async def _go_on(self, chat: Conversation, seen: Look, wanted: RequestOptions, tried: Tried) -> None:
        """Goes on with a compaction that has been made: it answers the request, unless there may be another."""
        # Reminders that it has summarised come back whole, and take room.
        if self._current.retention.update(chat, wanted.retained) and not wanted.is_manual:
            self._current.answered = None
        else:
            tried.made += 1
            self._current.answered = self._request(replace(seen, chat=chat))
        await self._current.records.write(chat)
