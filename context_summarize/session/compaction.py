"""A compaction: gets the texts that its plan lacks, builds the view with summaries and thread, and makes it current."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace

from context_summarize.background import in_thread
from context_summarize.core.kept import Kept, kept, with_thread
from context_summarize.core.nodes import View
from context_summarize.core.plan import Plan
from context_summarize.redaction import traceback_of
from context_summarize.session.announcer import Change
from context_summarize.session.conversation import Conversation
from context_summarize.session.current import Current
from context_summarize.session.decide import Attempts, Situation

logger = logging.getLogger(__name__)

_WINDOW, _MOST_COMPACTIONS = 10, 2
"""If the smallest possible request is still too large, at most two compactions run per ten requests."""


class Compactions:
    """Carries out plans."""

    def __init__(self, current: Current) -> None:
        self._current, self._summaries = current, current.summaries
        self._made_at: deque[int] = deque(maxlen=_MOST_COMPACTIONS)
        """How many requests had been served before each of the last compactions."""

    def may_compact_again(self) -> bool:
        """Returns False after two compactions within ten requests. A view that cannot fit is then left as it is."""
        requests = self._current.services.totals.requests
        recent = [at for at in self._made_at if requests - at < _WINDOW]
        return len(recent) < _MOST_COMPACTIONS

    def holds(self, seen: Situation) -> bool:
        """Returns True while the conversation and its segments are those that the plan was made for."""
        return self._current.is_current(seen.chat) and seen.chat.segments is self._current.chat.segments

    async def fetch(self, plan: Plan, seen: Situation, attempts: Attempts, *, falls_back: bool) -> None:
        """Gets the texts that a plan lacks. With `falls_back` it does not wait: fallbacks replace the late ones."""
        chat, services = seen.chat, self._current.services
        self._current.announcer.announce(plan.reason, seen.limits.budget, seen.used, len(chat.log))
        await services.outbox.flush()
        target = await self._current.host.summariser()
        began, left = services.clock(), max(0.0, services.config.wait_seconds - attempts.waited)
        seconds = 0.0 if falls_back else None if plan.reason == "manual" else left
        try:
            with self._current.announcer.waiting():
                await self._summaries.get(plan.missing, chat.log, target, seconds, attempts.stop)
        finally:
            attempts.waited += services.clock() - began
        if falls_back:
            await self._summaries.fill_in(plan.missing, chat.log)
        elif self.holds(seen):
            attempts.wait_is_over = not all(map(self._summaries.text_of, plan.missing))

    async def make(self, plan: Plan, seen: Situation, attempts: Attempts) -> Conversation | None:
        """Builds a plan's view and makes it current; returns None if the conversation has changed meanwhile."""
        view, kept = await self.view(seen.chat, plan)
        if not self.holds(seen) or len(view.shown) < len(view.nodes):
            return None
        # No await follows: all that may fail has been awaited.
        current, before = self._current, self._current.chat
        view = replace(view, rows_at_compaction=len(before.log), hides_system=before.view.hides_system)
        after = before.compacted(view, current.records.hash_of(before.log, view))
        shown_before = {node.place for node in before.view.nodes}
        new = [item for item in view.shown if item.node.place not in shown_before]
        change = Change(
            plan=plan,
            from_cache=sum(item.node.key in self._summaries.stored for item in new),
            fallbacks=sum(item.summary.fallback for item in view.shown),
            new_fallbacks=0 if current.host.is_offline else sum(item.summary.fallback for item in new),
            shortened=len(view.shortened.keys() - before.view.shortened.keys()),
            values=kept,
            waited=attempts.waited,
        )
        attempts.saved = current.announcer.made(change, seen.limits, before, after)
        current.prefetch.stop()
        current.chat = after
        before.log.keep_entries_of(view)
        self._summaries.compacted(view.shown, before.log)
        self._made_at.append(current.services.totals.requests)
        current.services.totals.compactions += 1
        current.services.totals.from_cache += change.from_cache
        return after

    async def view(self, chat: Conversation, plan: Plan) -> tuple[View, Kept]:
        """Returns the plan's view with the known summaries, and the counts of exact values that it keeps."""
        before, log = chat.view, chat.log
        rows = filter(None, (self._summaries.row_of(node, log) for node in plan.view.nodes))
        view = replace(plan.view, shown=tuple(rows))
        if not view.frontier:
            return view, Kept()
        frame = self._current.services.prompts.frame.fill

        def made() -> tuple[View, Kept]:
            quoting = with_thread(chat.thread, log, view, plan.notes_room, frame)
            return quoting, kept(chat.thread, log, before, quoting)

        try:
            return await in_thread(log.characters_from(0), made)
        except Exception as error:  # noqa: BLE001 - the thread quotes any text, and a request can do without it
            trace = traceback_of(error, self._current.services.config.redact)
            logger.error("the thread cannot be written, so the view has none: %s", trace)
            return view, Kept()
