"""A request: its rows, and before that the compaction that may be due; and a compaction on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from context_summarize.core.draft import Plan
from context_summarize.core.nodes import Node
from context_summarize.core.plan import next_plan, plan
from context_summarize.core.view import View
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.messages.view_rows import continues
from context_summarize.session.decide import Facts, decide, is_worthwhile
from context_summarize.session.request_limits import RequestLimits, RequestOptions
from context_summarize.session.state import Session
from context_summarize.session.telling import Announcement, Change, Telling

_PREFETCH = 2 / 3
"""Summaries are made ahead from this share of the tokens on at which the next compaction is due."""
_FRESH = 20
"""Until this many rows have come after a compaction, another one is made only if the base is full."""
_PAUSE = 5
"""After a compaction whose view does not fit, the next such one comes this many requests later."""


class Aside(Exception):
    """The request gives up its turn, because the history is being replaced or the user steers."""


class Requests:
    """Answers requests from a session's state."""

    def __init__(self, session: Session, telling: Telling) -> None:
        self._session, self._telling = session, telling
        self._services, self._host, self._texts = session.services, session.host, session.texts
        self.compacting = 0
        """Counts the running requests whose compaction is due."""

    async def rows(self, wanted: RequestOptions) -> list[JsonRow]:
        """Returns the rows for the next request, within the budget."""
        session, began, rows = self._session, self._services.clock(), None
        limits = await self._host.limits(wanted)
        if wanted.hard_fit and session.last[:2] == (session.log, len(session.log)):
            limits = await self._smaller(wanted, limits)
        is_hook = self._services.outbox.is_in_hook  # it waits for no summary: the summary may wait for the hook
        while rows is None:
            await session.resume()
            async with session.turn.taken(in_hurry=is_hook):
                if session.is_resumed:
                    left = 0.0 if is_hook else self._services.config.wait_seconds - self._services.clock() + began
                    rows = await self._served(wanted, limits, left)
        await session.saved.flush()
        await self._services.outbox.flush()
        return rows

    async def _served(self, wanted: RequestOptions, limits: RequestLimits, seconds: float) -> list[JsonRow] | None:
        """Returns the rows of a request that has its turn; None if it has stepped aside.

        It makes one compaction, and a second one only if rows that came meanwhile do not fit.
        """
        session = self._session
        shown = await session.shown()
        for is_second in (False, True):
            retained, tokens = session.retain(shown, wanted.retained)
            here = limits.beside(tokens) if tokens else limits
            facts, may_prefetch = self.facts(shown, here)
            if may_prefetch or facts.reason is not None:
                facts = await self._prefetched(shown, here, facts, may_prefetch)
            if facts.reason is None or (is_second and facts.reason != "must_fit"):
                break
            try:
                made = await self._compacted(shown, here, facts, seconds)
            except Aside:
                return None
            if not made:
                break
            shown = await session.shown()
        return self._answer(shown, here, retained)

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
        is_ahead = may_prefetch and has_grown and self._host.seen(None) is not None
        facts = Facts(
            used=used,
            room=own.view_room,
            # A host may send a request again: it gets the same rows, until one is added or a late summary comes.
            compact_from=due if config.auto_compact and not is_again else math.inf,
            defer_below=own.defer_below(shown.left) if is_ahead and self._texts.is_busy else 0.0,
            is_ahead=is_ahead,
            may_compact_again=self._services.totals.requests >= session.tight_at + _PAUSE,
        )
        return facts, may_prefetch

    async def _prefetched(self, shown: View, limits: RequestLimits, facts: Facts, may_prefetch: bool) -> Facts:
        """Starts the summaries of a compaction that comes near; returns the facts with these under way."""
        await self._session.cut_parts(limits)
        if not may_prefetch or self._host.is_cancelled():
            return facts
        target = await self._host.summariser()
        for node in next_plan(self._session.plan_input(shown, limits)).missing if target else ():
            self._texts.start(node, self._session.log, target, ahead=True)
        return self.facts(shown, limits)[0]

    async def _compacted(self, shown: View, limits: RequestLimits, facts: Facts, seconds: float) -> bool:
        """Makes the compaction that is due, if it is worth it and its texts come in time; returns True if it did.

        Raises:
            Aside: the request must give up its turn.
        """
        session, log, rows = self._session, self._session.log, len(self._session.log)
        announced = Announcement(self._services.outbox)
        fallbacks, waited, has_waited = set[str](), 0.0, False
        self.compacting += 1
        try:
            while (reason := facts.reason) is not None and not self._texts.is_closed:
                # Rows that came during a wait stay verbatim. Otherwise the plan would need more and more texts.
                given = session.plan_input(shown, limits.keeping(len(log) - rows), fallbacks)
                whole = plan(given, reason)
                ready = plan(given, reason, known_only=True) if facts.is_ahead and whole.missing else whole
                step, chosen = decide(replace(facts, has_waited=has_waited), limits.own, whole, ready)
                if step == "go on":
                    session.is_late = has_waited
                    return False
                if step == "compact":
                    await self._make(chosen, shown, limits, announced, waited)
                    return True
                announced.open(reason, limits.budget, limits.used(shown.tokens), len(log))
                if step == "wait":
                    waited += await self._wait_in_turn(chosen.missing, seconds - waited)
                    has_waited = any(map(self._texts.is_under_way, chosen.missing)) or seconds <= waited
                failed = [node for node in chosen.missing if step != "wait" or not self._is_coming(node)]
                await self._texts.fall_back(failed, log)
                fallbacks |= {node.key for node in failed}
                shown = await session.shown()
                facts = self.facts(shown, limits)[0]
            return False
        finally:  # also for a request that is cancelled
            announced.withdraw()
            self.compacting -= 1
            if waited:
                self._services.totals.waited(waited)

    def _is_coming(self, node: Node) -> bool:
        return self._texts.is_under_way(node) or self._texts.text_of(node) is not None

    async def _wait_in_turn(self, nodes: Sequence[Node], seconds: float) -> float:
        """Waits for these summaries as the holder of the turn; returns the seconds that it took.

        Raises:
            Aside: somebody else is in a hurry.
        """
        began, hurry = self._services.clock(), self._session.turn.is_hurried
        await self._wait(nodes, max(0.0, seconds), hurry.is_set)
        if hurry.is_set():
            raise Aside
        return self._services.clock() - began

    async def _wait(self, nodes: Sequence[Node], seconds: float | None, is_over: Callable[[], bool]) -> None:
        """Starts these summaries and waits for them; the arguments are those of `SummaryRegistry.wait`."""
        log, target = self._session.log, await self._host.summariser()
        for node in nodes:
            self._texts.start(node, log, target)
        self._services.outbox.start()
        with self._telling.waiting():
            await self._texts.wait(nodes, seconds, is_over)

    async def _make(
        self, chosen: Plan, shown: View, limits: RequestLimits, announced: Announcement, waited: float
    ) -> int:
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
            values=session.thread.kept((session.cut.groups, cut.groups), shown, after),
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
        return self._telling.made(change, limits, announced)

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

        It waits without a deadline, and holds no turn meanwhile: requests go first, and it plans again after them.
        """
        session, fallbacks, announced = self._session, set[str](), Announcement(self._services.outbox)
        limits, began = await self._host.limits(self._host.last), self._services.clock()
        log, rows = None, 0
        self.compacting += 1
        try:
            while True:
                await session.resume()
                async with session.turn.taken(in_hurry=True):
                    if not session.is_resumed:
                        continue
                    if log is not session.log:
                        log, rows = session.log, len(session.log)
                    shown = await session.shown()
                    await session.cut_parts(limits)
                    given = session.plan_input(shown, limits.keeping(len(log) - rows), fallbacks)
                    made = plan(given, "manual", focus)
                    if self._texts.is_closed or not is_worthwhile(made, limits.own, may_compact_again=True):
                        return 0
                    if not made.missing:
                        return await self._make(made, shown, limits, announced, self._services.clock() - began)
                    announced.open("manual", limits.budget, limits.used(shown.tokens), len(log))
                if not await self._came(made.missing, fallbacks):
                    return 0
        finally:
            self.compacting -= 1
            announced.withdraw()
            await session.saved.flush()
            await self._services.outbox.flush()

    async def _came(self, nodes: Sequence[Node], fallbacks: set[str]) -> bool:
        """Waits for these summaries as long as it takes, and adds the keys of those that failed to `fallbacks`.

        Returns:
            False if the host has cancelled meanwhile.
        """
        log = self._session.log
        await self._wait(nodes, None, lambda: False)
        if any(map(self._texts.is_under_way, nodes)):
            return False
        failed = [node for node in nodes if self._texts.text_of(node) is None]
        if self._session.log is log and not self._texts.is_closed:
            await self._texts.fall_back(failed, log)
            fallbacks |= {node.key for node in failed}
        return True
