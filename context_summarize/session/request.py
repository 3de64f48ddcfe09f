"""A request: looks at the conversation, compacts it if that is due, and returns the rows."""

from __future__ import annotations

import asyncio
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
from context_summarize.session.decide import Attempts, Facts, Situation, decide_for
from context_summarize.session.request_limits import RequestLimits, RequestOptions

_PREFETCH = 2 / 3
"""Prefetch begins when the request holds this share of the tokens at which the next compaction is due."""
_YOUNG = 40
"""A session with fewer rows and no compaction may stay short, as those of sub-agents do."""
_PREFETCH_YOUNG = 0.9
"""The share that counts instead for such a session."""
_COLD_AFTER = 3_600
"""Seconds without a request, after which a provider's prompt cache is empty unless it was asked for a longer life."""


class Requests:
    """Answers requests: decides and acts until the decision is to go on."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._services, self._config, self._host = current.services, current.services.config, current.host
        self._summaries = current.summaries
        self.compactions = Compactions(current)
        self._last_at = math.inf
        """The clock's time when the last request was served."""
        self._last: tuple[Log | None, int] = (None, 0)
        """The log of that request, and how many rows it had."""
        self._turn = asyncio.Lock()
        """Held by the request that decides or compacts, and by none that waits for summaries or hooks."""
        self.compacting_requests = 0
        """Counts the running requests whose compaction is due."""

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
        """Returns the rows for the next request, within the budget."""
        attempts, given = Attempts(self._summaries.stop), await self._host.limits(wanted)
        if wanted.hard_fit and self._last == (self._current.chat.log, len(self._current.chat.log)):
            # The provider has refused the request that was served last. It gets a smaller one, whatever we count.
            seen = await self.observe(wanted, given)
            wanted = replace(wanted, token_budget=max(1, min(seen.limits.budget, seen.used - 1)))
            attempts, given = Attempts(self._summaries.stop), await self._host.limits(wanted)
        seen = await self._act(wanted, given, attempts)
        if not self._is_answered(seen):
            self._current.answered = self._identity(seen, self._summaries.version if attempts.is_late else None)
        served = (seen.chat.log, len(seen.chat.log))
        if self._last != served:
            self._services.totals.requests += 1
        self._last, self._last_at = served, self._services.clock()
        rows = self._served(seen.rendering, seen.limits)
        await self._services.outbox.flush()  # before prefetch starts tasks that flush it too
        if seen.is_near and seen.may_prefetch and not self._host.is_cancelled():
            target = await self._host.summariser()
            if target is not None:
                self._current.prefetch.look(seen.chat, seen.limits, target)
        return rows

    def _served(self, view: Rendering, limits: RequestLimits) -> list[JsonRow]:
        """Returns copies of the view's rows, with the retained reminders and the reminder blocks of the prompt."""
        size, retention = view.tokens, self._current.retention
        self._current.announcer.warn_if_too_large(view, limits, limits.used(size))
        rows = view.rows(limits.system_prompt)
        apart = limits.own.system_tokens
        may_chain = any(map(continues, reversed(rows)))
        sent = size + apart + retention.tokens
        self._host.meter.served(sent, system=view.system_tokens + apart, may_chain=may_chain)
        if limits.status is not None:
            rows.insert(len(rows) - len(view.open), limits.status)  # at the end, before open calls
        if retention.tokens:  # after the summarised part
            at = len(view.head) + bool(limits.system_prompt)
            rows[at:at] = map(copy_json, retention.held)
        return rows

    async def compact(self, focus: str | None) -> int:
        """Makes a compaction now, down to `keep_recent`; returns the tokens that it saves, as the provider counts.

        It waits without a deadline. If others change the view meanwhile, it plans again from their view.
        """
        wanted, attempts = replace(self._host.last, is_manual=True, focus=focus), Attempts(self._summaries.stop)
        await self._act(wanted, await self._host.limits(wanted), attempts)
        await self._services.outbox.flush()
        return attempts.saved

    async def observe(self, wanted: RequestOptions, given: RequestLimits) -> Situation:
        """Returns the situation of a request. If a compaction may be due, its segments are cut first."""
        retention = self._current.retention
        while True:
            chat = await self._current.ready_chat(hides_system=given.system_prompt is not None)
            if wanted.retained or retention.tokens:
                retention.update(chat, wanted.retained)
            limits = given.beside(retention.tokens) if retention.tokens else given
            rendering = chat.rendering()
            rows, used = len(chat.log), limits.used(rendering.tokens)
            own, left = limits.own, chat.left_by_last(rendering)
            due_own = own.full_after(left) if chat.is_fresh else own.due_after(left)
            due = limits.used(due_own)
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
            is_unchanged = self._current.chat is chat and len(chat.log) == rows
            if is_unchanged or not is_near:
                may_prefetch = self._config.prefetch and self._config.auto_compact and used >= ahead
                return Situation(chat, limits, rendering, used, due, may_prefetch, is_near)

    def facts(self, seen: Situation, wanted: RequestOptions, attempts: Attempts) -> Facts:
        """Returns the facts of a decision."""
        chat, limits, is_manual = seen.chat, seen.limits, wanted.is_manual
        last_log, last_rows = self._last
        # Summaries were made ahead only if the log has grown since its last request. A resumed log has had no request.
        has_grown = last_log is chat.log and len(chat.log) > last_rows
        has_provider = self._host.seen(None) is not None
        is_ahead = seen.may_prefetch and has_grown and has_provider and not is_manual
        is_busy = is_ahead and self._current.prefetch.is_busy(chat)
        # A request compacts once; twice only if rows that came meanwhile do not fit.
        most_compactions = 2 if seen.used > limits.budget and not is_manual else 1
        seconds = self._services.clock() - self._last_at
        left = chat.left_by_last(seen.rendering)
        return Facts(
            used=seen.used,
            budget=limits.budget,
            compact_from=seen.due if self._config.auto_compact else math.inf,
            defer_below=limits.used(limits.own.defer_below(left)) if is_busy else 0.0,
            is_ahead=is_ahead,
            is_cold=seen.may_prefetch and seconds > _COLD_AFTER and chat.steered.undone_at is None,
            is_manual=is_manual,
            focus=wanted.focus,
            is_answered=attempts.compactions >= most_compactions or (not is_manual and self._is_answered(seen)),
            wait_is_over=attempts.wait_is_over,
            may_compact_again=self.compactions.may_compact_again(),
        )

    def _identity(self, seen: Situation, late_at: int | None = None) -> tuple[object, ...]:
        """Returns the values that identify a request. Our own limits are not among them: each response changes them.

        Args:
            late_at: the registry's version, if the request went on without late summaries. When one arrives the
                version changes, so the same request counts as new.
        """
        chat, limits = seen.chat, seen.limits
        return (chat.log, len(chat.log), chat.view, limits.budget, limits.system_prompt, late_at)

    def _is_answered(self, seen: Situation) -> bool:
        """Returns True if the same request was answered before: a host may send it several times."""
        if self._current.answered == self._identity(seen):
            return True
        # It may have gone on without late summaries. Then it is the same request until one arrives.
        return self._current.answered == self._identity(seen, self._summaries.version)

    async def _act(self, wanted: RequestOptions, given: RequestLimits, attempts: Attempts) -> Situation:
        """Decides and acts until the request goes on; returns the last look."""
        segments_before, first_rows, is_due = None, 0, False
        try:
            while True:
                # Requests take turns, so that only the first of several makes the compaction.
                async with self._turn:
                    seen = await self.observe(wanted, given)
                    facts = self.facts(seen, wanted, attempts) if seen.is_near else None
                    if facts is None or facts.reason is None:
                        return seen
                    if not is_due and facts.reason != "cold_cache":
                        if not self.compacting_requests:
                            self._summaries.begin()
                        is_due = True
                        self.compacting_requests += 1
                    chat = seen.chat
                    if segments_before is not chat.segments:
                        segments_before, first_rows = chat.segments, len(chat.log)
                    # Rows that come during a wait stay verbatim. Otherwise the plan would need more and more texts.
                    limits = seen.limits.keeping(len(chat.log) - first_rows)
                    step, plan = decide_for(facts, self._current.plan_input(chat, limits))
                    if plan is None:
                        return seen
                    if step == "go on":
                        attempts.is_late = attempts.wait_is_over and bool(plan.missing)
                        if wanted.is_manual or not attempts.is_late:
                            self._current.announcer.withdraw(attempts.waited)
                        return seen
                    after = await self.compactions.make(plan, seen, attempts) if step == "compact" else None
                if step != "compact":
                    await self.compactions.fetch(plan, seen, attempts, falls_back=step == "fall back")
                elif after is not None:
                    segments_before = None
                    await self._record(after, seen, wanted, attempts)
        except BaseException:  # a cancellation as well
            self._current.announcer.withdraw(attempts.waited)
            self._services.outbox.start()
            raise
        finally:  # however the request ends
            if is_due:
                self.compacting_requests -= 1
            if attempts.waited:
                self._services.totals.waited(attempts.waited)

    async def _record(self, chat: Conversation, seen: Situation, wanted: RequestOptions, attempts: Attempts) -> None:
        """Writes the record of a compaction. The request then counts as answered, unless it may need another."""
        # The request shows summarised reminders whole beside the view, and may be too large with them.
        if self._current.retention.update(chat, wanted.retained) and not wanted.is_manual:
            self._current.answered = None
        else:
            attempts.compactions += 1
            self._current.answered = self._identity(replace(seen, chat=chat))
        await self._current.records.write(chat)
