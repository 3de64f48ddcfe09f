"""The conversation of a session as it is now, and what all that read or change it share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from context_summarize.background import GRACE, LONG, in_thread, within
from context_summarize.config import Config
from context_summarize.core.draft import PlanInput
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.notes_log import NotesLog
from context_summarize.core.plan import next_plan
from context_summarize.core.view import ShownGroups, View
from context_summarize.core.view_state import ViewState
from context_summarize.events import Outbox
from context_summarize.notes.readings import Readings
from context_summarize.redaction import build_redactor
from context_summarize.session.compaction import Announcer, ViewMaker
from context_summarize.session.conversation import Conversation, Records, with_view
from context_summarize.session.limits import Host, RequestLimits
from context_summarize.session.prefetch import Prefetch
from context_summarize.session.serving import Retention, Server
from context_summarize.stores import SummaryStore
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services, Statistics

T = TypeVar("T")

END_SECONDS = 5.0
"""How long the end of a session takes at most, in all."""
_FOR_CALLS, _FOR_FINISH = 0.8, 0.9
"""Shares of it: until then summaries under way are waited for; until then they are stored and told of."""


class Current:
    """Holds the conversation as it is now.

    There is no lock: rows, other requests and the user's steering may come during any wait. What was planned before a
    wait is committed only if history, view and pins are still those that it was planned for.
    """

    def __init__(
        self,
        coordinator: Any | None,
        config: Config,
        store: SummaryStore,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.host = host = Host(coordinator, config)
        self.services = services = Services(
            config=config,
            prompts=load_prompts(config.prompts),
            store=store,
            outbox=Outbox(coordinator, config.redact),
            totals=Statistics(),
            count=host.counter.count,
            clock=clock,
            sleep=sleep,
        )
        self.summarizer = Summarizer(services)
        self.tasks = tasks = SummaryRegistry(services, self.summarizer, host.is_cancelled)
        self.announcer = Announcer(services.outbox)
        self.server = Server(services.outbox, host.meter, services.count)
        self.views = ViewMaker(services, tasks, host.providers.operations)
        self.records = Records(services, tasks, host.session_id)
        self.prefetch = Prefetch(tasks, services.outbox, lambda chat, limits: self.planned(chat, limits, next_plan))
        self._redact = build_redactor(config.redact)
        self._left = END_SECONDS
        """Seconds that the end of the session may still take."""
        self.answered: tuple[object, ...] | None = None
        """The last request that was answered for good: the same one again has the same view, without a compaction."""
        self.chat = self.fresh()

    def fresh(self) -> Conversation:
        """A conversation without rows."""
        config, prompts, count = self.services.config, self.services.prompts, self.services.count
        history = History(recall=self.host.providers.offers_recall())
        builder = NodeBuilder(history, prompts.segment.hash, prompts.merge.hash, self._redact)
        readings = Readings.fresh(config.action_tools or {}, prompts.rule_signs)
        log = NotesLog(builder, self._redact, readings, prompts.rules_heading, count)
        groups, view = ShownGroups(history, count), ViewState()
        return Conversation(history, builder, groups, log, view, View(view, groups))

    def begin(self, chat: Conversation) -> None:
        """Go on with another conversation: what is being made for the old one comes to nothing."""
        self.prefetch.stop()
        self.announcer.withdraw(0, len(self.chat.history), 0.0)
        self.tasks.forget_history(chat.history)
        self.server.retention = Retention(self.services.count)
        self.chat, self.answered = chat, None

    async def steer(self, chat: Conversation) -> None:
        """Go on with what a user has changed: one assignment, then the record and the events."""
        self.prefetch.stop()
        self.chat, self.answered = chat, None
        await self.records.write(chat)
        await self.services.outbox.flush()

    def is_current(self, chat: Conversation) -> bool:
        """Whether history, view and pins are still those of this conversation."""
        now = self.chat
        return now.history is chat.history and now.view is chat.view and now.steered is chat.steered

    async def resumed(self, *, hides_system: bool) -> Conversation:
        """The conversation as it is now. Once per history, the farthest record that matches it is taken up.

        No provider is asked.

        Args:
            hides_system: a factory's prompt takes the place of stored system rows.
        """
        while True:
            chat = self.chat
            if not chat.adopted:
                await self._adopt(chat, hides_system=hides_system)
            elif chat.groups.hides_system != hides_system:
                self.chat = with_view(chat, chat.view, hides_system=hides_system)
            elif chat.groups.next_group < len(chat.history.groups):
                await in_thread(chat.groups.backlog(), chat.groups.advance)
            else:
                return chat

    async def _adopt(self, chat: Conversation, *, hides_system: bool) -> None:
        await self.host.counter.load()
        found, steered, is_new = await self.records.resume(chat)
        if self.chat is not chat:
            return
        view = found.view if found else chat.view
        self.chat = replace(with_view(chat, view, hides_system=hides_system), steered=steered, adopted=True)
        if found is not None:
            self.chat.builder.start(*found.sizes, view.frontier)
            self.tasks.compacted(view.shown)
            self.services.totals.from_cache += sum(not shown.summary.fallback for shown in view.shown)
        if is_new:
            await self.records.write(self.chat, is_new=False)

    async def tokens(self) -> int:
        """Tokens of the request as it would go out now, as the provider counts; 0 while there is nothing."""
        system = self.host.system
        if not len(self.chat.history) and not system.text:
            return 0
        chat = await self.resumed(hides_system=system.text is not None)
        return self.host.meter.correct(chat.rows.tokens() + system.tokens + self.server.retention.tokens)

    def heard(self, response: Mapping[str, Any], *, by_loop: bool) -> None:
        """Take in an `llm:response` that is none of our own calls', or a `provider:error` of the loop.

        Those of another provider say nothing of the view.
        """
        is_good, name = not by_loop and response.get("status", "ok") == "ok", response.get("provider")
        if is_good and isinstance(name, str):
            self.summarizer.answered_elsewhere(name)
        if isinstance(name, str) and self.host.providers.is_another(name):
            return
        self.host.refusals.heard(response, by_loop=by_loop)
        if is_good and isinstance(usage := response.get("usage"), dict):
            self.host.meter.observe(usage)

    async def finish(self) -> None:
        """Begin no more summaries; what is under way may take its time, and is stored then."""
        await self._ends(self._finished, _FOR_FINISH)

    async def _finished(self) -> None:
        await self.prefetch.close()
        await self.tasks.close(_FOR_CALLS * self._left)
        await self.services.outbox.flush()

    async def close(self, *others: Callable[[], Awaitable[None]]) -> None:
        """End what is under way, these others at the same time, and let go of the store."""
        ending = (self.prefetch.close, self.tasks.close, self.services.outbox.close, self._release, *others)
        await self._ends(lambda: asyncio.gather(*(end() for end in ending)))

    async def _release(self) -> None:
        await self.records.close()
        await self.services.store.close()

    async def _ends(self, work: Callable[[], Awaitable[Any]], share: float = 1.0) -> None:
        """Do this within what is left for the end of the session, or a share of it; what takes longer is given up."""
        began = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            await within(work, max(0.0, share * self._left - GRACE))
        self._left -= asyncio.get_running_loop().time() - began

    async def planned(self, chat: Conversation, limits: RequestLimits, do: Callable[[PlanInput], T]) -> T:
        """What planning comes to; in a thread, on a copy, where the rows are many."""
        given = PlanInput(
            builder=chat.builder,
            groups=chat.groups,
            view=chat.view,
            limits=limits.own,
            pins=tuple(sorted(chat.steered.pins)),
            size_of=partial(self.tasks.size_of, history=chat.history),
        )
        if chat.history.characters_from(chat.view.frontier_row) <= LONG:
            return do(given)
        return await asyncio.to_thread(do, given.as_it_is())
