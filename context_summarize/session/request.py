"""A request: its rows, and before that the compaction that may be due; and a compaction on demand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from context_summarize.core.draft import Plan, PlanInput, Reason
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node
from context_summarize.core.plan import next_plan, plan
from context_summarize.core.view import View
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.messages.view_rows import continues
from context_summarize.session.decide import Facts, Step, decide, is_worthwhile
from context_summarize.session.request_limits import RequestLimits, RequestOptions
from context_summarize.session.state import Session
from context_summarize.session.telling import Announcement, Change, Telling
from context_summarize.summaries.jobs import Target

_PREFETCH = 2 / 3
"""Summaries are made ahead from this share of the tokens on at which the next compaction is due."""
_FRESH = 20
"""Until this many rows have come after a compaction, another one is made only if the base is full."""
_PAUSE = 5
"""After a compaction whose view does not fit, the next such one comes this many requests later."""


@dataclass(slots=True)
class Attempt:
    """What a request has done for the compaction that is due. While it waits for summaries, others have their turn."""

    target: Target | None = None
    """The provider that writes summaries. The host's code names it, so it is asked for outside the turn."""
    log: Log | None = None
    rows: int = 0
    """Rows of the log when it began. Later ones stay verbatim: else the plan would need more and more texts."""
    missing: Sequence[Node] = ()
    """The summaries to wait for."""
    fallbacks: set[str] = field(default_factory=set)
    """Keys of the summaries that failed."""
    has_waited: bool = False
    waited: float = 0.0
    """Seconds, of the whole request."""
    made: int = 0
    """Compactions of the whole request."""

    def begin(self, log: Log) -> None:
        """Begins anew: with another log, or after a compaction."""
        self.log, self.rows, self.missing, self.fallbacks, self.has_waited = log, len(log), (), set(), False


class Requests:
    """Answers requests from a session's state."""

    def __init__(self, session: Session, telling: Telling) -> None:
        self._session, self._telling = session, telling
        self._services, self._host, self._texts = session.services, session.host, session.texts
        self.announced = Announcement(session.services.outbox)

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
        """Returns the rows for the next request, within the budget."""
        session, services, attempt, rows = self._session, self._services, Attempt(), None
        # A hook waits for no summary: the summary may wait for the hook.
        end = services.clock() + (0.0 if services.outbox.is_in_hook else services.config.wait_seconds)
        limits = await self._host.limits(wanted)
        if wanted.hard_fit and session.last[:2] == (session.log, len(session.log)):
            limits = await self._smaller(wanted, limits)
        try:
            with self.announced.wanted():
                while rows is None:
                    attempt.target = await self._host.summariser()
                    async with session.taken():
                        rows = await self._served(wanted, limits, attempt)
                    if rows is None:
                        await self._wait(attempt, max(0.0, end - services.clock()))
        finally:  # also for a request that is cancelled
            if attempt.waited:
                services.totals.waited(attempt.waited)
        await session.saved.flush()
        await services.outbox.flush()
        return rows

    async def _served(self, wanted: RequestOptions, limits: RequestLimits, attempt: Attempt) -> list[JsonRow] | None:
        """Returns the rows of a request that has its turn; None if it must wait for `attempt.missing` first.

        It makes one compaction, and a second one only if rows that came meanwhile do not fit.
        """
        session = self._session
        while True:
            if attempt.log is not session.log:
                attempt.begin(session.log)
            shown = await session.shown()
            retained, tokens = session.retain(shown, wanted.retained)
            here = limits.beside(tokens) if tokens else limits
            facts, may_prefetch = self.facts(shown, here)
            if not attempt.missing and (may_prefetch or facts.reason is not None):
                facts = await self._prefetched(shown, here, facts, may_prefetch, attempt)
            step: Step = "go on"
            most = 2 if facts.reason == "must_fit" else 1
            if facts.reason is not None and attempt.made < most and not self._texts.is_closed:
                step = await self._step(shown, here, facts, facts.reason, attempt)
            if step == "go on":
                return self._answer(shown, here, retained)
            if step == "wait":
                return None

    async def _smaller(self, wanted: RequestOptions, limits: RequestLimits) -> RequestLimits:
        """Returns limits below the size of the last request, which the provider has refused, whatever we count."""
        shown = await self._session.shown()
        less = max(1, min(limits.budget, limits.used(shown.tokens) - 1))
        return await self._host.limits(replace(wanted, token_budget=less))

    def facts(self, shown: View, limits: RequestLimits) -> tuple[Facts, bool]:
        """Returns the facts of a decision, and True if summaries may be made ahead."""
        session, own, config = self._session, limits.own, self._services.config
        cut, log, used = session.cut, session.log, shown.tokens
        is_fresh = cut.rows > cut.changed_at and len(log) - log.row_after_number(cut.rows) < _FRESH
        due = own.full_after(shown.left) if is_fresh else own.due_after(shown.left)
        may_prefetch = config.prefetch and config.auto_compact and used >= due * _PREFETCH
        has_grown = session.last[0] is log and len(log) > session.last[1]
        is_again = session.last == (log, len(log), limits.budget) and not session.is_late
        is_first = session.last[0] is not log and cut.since > 0  # of a resumed session: its figures are not known yet
        is_ahead = may_prefetch and has_grown and self._host.seen(None) is not None
        facts = Facts(
            used=used,
            room=own.view_room,
            # A host may send a request again: it gets the same rows, until one is added or a late summary comes.
            compact_from=due if config.auto_compact and not (is_again or is_first) else math.inf,
            defer_below=own.defer_below(shown.left) if is_ahead and self._texts.is_busy else 0.0,
            is_ahead=is_ahead,
            may_compact_again=self._services.totals.requests >= session.tight_at + _PAUSE,
        )
        return facts, may_prefetch

    async def _prefetched(
        self, shown: View, limits: RequestLimits, facts: Facts, may_prefetch: bool, attempt: Attempt
    ) -> Facts:
        """Starts the summaries of a compaction that comes near; returns the facts with these under way."""
        await self._session.cut_parts(limits)
        if not may_prefetch or self._host.is_cancelled():
            return facts
        for node in next_plan(self._session.plan_input(shown, limits)).missing if attempt.target else ():
            self._texts.start(node, self._session.log, attempt.target, ahead=True)
        return self.facts(shown, limits)[0]

    async def _step(self, shown: View, limits: RequestLimits, facts: Facts, reason: Reason, attempt: Attempt) -> Step:
        """Takes the next step of a request whose compaction is due: compacts, or falls back; returns the step."""
        log, given = self._session.log, self._input(shown, limits, attempt)
        whole = plan(given, reason)
        ready = plan(given, reason, known_only=True) if facts.is_ahead and whole.missing else whole
        step, chosen = decide(replace(facts, has_waited=attempt.has_waited), limits.own, whole, ready)
        if step == "go on":
            self._session.is_late = attempt.has_waited
        elif step == "compact":
            await self._make(chosen, shown, limits, attempt.waited)
            attempt.made += 1
            attempt.begin(log)
        else:
            self.announced.open(reason, limits.budget, limits.used(shown.tokens), len(log))
            attempt.missing = chosen.missing
        if step == "fall back":
            await self._fall_back(chosen.missing, attempt)
        return step

    def _input(self, shown: View, limits: RequestLimits, attempt: Attempt) -> PlanInput:
        more = len(self._session.log) - attempt.rows
        return self._session.plan_input(shown, limits.keeping(more), attempt.fallbacks)

    async def _wait(self, attempt: Attempt, seconds: float | None) -> None:
        """Waits for the missing summaries, and lets code write those that fail.

        Args:
            seconds: the longest wait; None = as long as it takes. The host's cancellation and another log end it.
        """
        session, texts, nodes = self._session, self._texts, attempt.missing
        began, log = self._services.clock(), session.log
        for node in nodes:
            texts.start(node, log, attempt.target)
        self._services.outbox.start()
        await texts.wait(nodes, seconds, lambda: session.log is not log)
        took = self._services.clock() - began
        attempt.waited += took
        attempt.has_waited = any(map(texts.is_under_way, nodes)) or (seconds is not None and took >= seconds)
        if session.log is log and not texts.is_closed:
            failed = [node for node in nodes if not texts.is_under_way(node) and texts.text_of(node) is None]
            await self._fall_back(failed, attempt)

    async def _fall_back(self, nodes: Sequence[Node], attempt: Attempt) -> None:
        await self._texts.fall_back(nodes, self._session.log)
        attempt.fallbacks |= {node.key for node in nodes}

    async def _make(self, chosen: Plan, shown: View, limits: RequestLimits, waited: float) -> int:
        """Makes a plan's cut the one in force; returns the tokens that it saves, as the provider counts."""
        session = self._session
        cut, after = await session.prepared(replace(chosen.cut, fallbacks=()))
        # No await follows: all that may fail has been awaited.
        nodes = () if cut.is_bare else after.texts
        new = {node.key for node in nodes}.difference(node.key for node in shown.texts)
        if chosen.reason == "manual" and after.tokens >= shown.tokens:
            return 0  # what the thread says more outweighs a few short rows
        change = Change(
            before=shown,
            after=after,
            rows=len(session.log),
            plan=chosen,
            from_cache=len(new & self._texts.stored),
            new_fallbacks=0 if self._host.is_offline else len({*cut.fallbacks}.difference(session.cut.fallbacks)),
            waited=waited,
        )
        session.put(cut)
        session.is_late = False
        if not chosen.fits:
            session.tight_at = self._services.totals.requests
        self._services.totals.compactions += 1
        self._services.totals.from_cache += change.from_cache
        return self._telling.made(change, limits, self.announced)

    def _answer(self, shown: View, limits: RequestLimits, retained: Sequence[JsonRow]) -> list[JsonRow]:
        """Returns copies of the view's rows, with the retained reminders and the reminder blocks of the prompt."""
        session, system = self._session, self._host.system
        self._telling.warn_if_too_large(shown, limits)
        rows, apart = shown.rows(system.text), system.tokens
        may_chain = any(map(continues, reversed(rows)))
        sent = shown.tokens + apart + session.held[2]
        self._host.meter.served(sent, system=shown.system_tokens + apart, may_chain=may_chain)
        if system.status is not None:
            rows.insert(len(rows) - len(shown.open), system.status)  # at the end, before open calls
        at = len(shown.head) - len(shown.newest) + bool(system.text)
        rows[at:at] = map(copy_json, retained)
        served = (session.log, len(session.log), limits.budget)
        if session.last[:2] != served[:2]:
            self._services.totals.requests += 1
        session.last = served
        return rows

    async def compact(self, focus: str | None) -> int:
        """Makes a compaction now, down to `keep_recent`; returns the tokens that it saves, as the provider counts.

        It waits without a deadline, and plans again after the requests that had their turn meanwhile.
        """
        session, attempt = self._session, Attempt()
        limits, began = await self._host.limits(self._host.last), self._services.clock()
        try:
            with self.announced.wanted():
                while True:
                    attempt.target = await self._host.summariser()
                    async with session.taken():
                        if attempt.log is not session.log:
                            attempt.begin(session.log)
                        shown = await session.shown()
                        await session.cut_parts(limits)
                        made = plan(self._input(shown, limits, attempt), "manual", focus)
                        if self._texts.is_closed or not is_worthwhile(made, limits.own, may_compact_again=True):
                            return 0
                        if not made.missing:
                            return await self._make(made, shown, limits, self._services.clock() - began)
                        self.announced.open("manual", limits.budget, limits.used(shown.tokens), len(session.log))
                        attempt.missing = made.missing
                    await self._wait(attempt, None)
                    if attempt.has_waited and attempt.log is session.log:  # the host has cancelled
                        return 0
        finally:
            await session.saved.flush()
            await self._services.outbox.flush()
