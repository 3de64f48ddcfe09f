"""The current conversation of a session, and the services that its readers and writers share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from context_summarize.background import GRACE, in_thread, within
from context_summarize.config import Config
from context_summarize.core.draft import PlanInput
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node
from context_summarize.core.segments import Cutting, Segments
from context_summarize.core.thread import Thread
from context_summarize.events import Outbox
from context_summarize.redaction import build_redactor
from context_summarize.session.announcer import Announcer
from context_summarize.session.conversation import Conversation
from context_summarize.session.host import Host, is_child
from context_summarize.session.prefetch import Prefetch
from context_summarize.session.records import Records
from context_summarize.session.request_limits import RequestLimits
from context_summarize.session.retention import Retention
from context_summarize.stores import SummaryStore
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services, Statistics

T = TypeVar("T")

END_SECONDS = 5.0
"""Seconds that the end of a session takes at most."""
_FOR_CALLS, _FOR_FINISH = 0.8, 0.9
"""Shares of the time left that `finish` may take: the first for the wait for summaries; the second for all of it."""


class Current:
    """Holds the current conversation.

    No lock protects it: rows, other requests and the user's steering may come during any wait. A plan is committed only
    if log, view and pins are still those that it was made for.
    """

    def __init__(
        self,
        coordinator: Any | None,
        config: Config,
        store: SummaryStore,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        outbox = Outbox(coordinator, config.redact, tells_user=config.announce and not is_child(coordinator))
        redact = build_redactor(config.redact)
        self.host = host = Host(coordinator, config, redact, partial(outbox.notify, level="error"))
        self.services = services = Services(
            config=config,
            prompts=load_prompts(config.prompts),
            store=store,
            outbox=outbox,
            totals=Statistics(),
            redact=redact,
            count=host.counter.count,
            clock=clock,
            sleep=sleep,
        )
        self.summarizer = Summarizer(services)
        self.summaries = summaries = SummaryRegistry(services, self.summarizer, host.is_cancelled)
        self.announcer = Announcer(services.outbox)
        self.retention = Retention(services.count)
        self.records = Records(services, summaries, host.session_id)
        self.prefetch = Prefetch(summaries, services.outbox, self.plan_input)
        own = () if isinstance(config.redact, bool) else config.redact
        self.cutting = Cutting("\n".join([services.prompts.segment.hash, *own]), services.prompts.merge.hash)
        self._seconds_left = END_SECONDS
        """Seconds that the end of the session may still take."""
        self.answered: tuple[object, ...] | None = None
        """The values of the last finished request. If the same request comes again, it gets the same view."""
        self.chat = self.fresh()

    def fresh(self) -> Conversation:
        """Returns a conversation without rows."""
        config, prompts, count = self.services.config, self.services.prompts, self.services.count
        recall = self.host.offers_recall()
        log = Log(count, self.services.redact, recall=recall, summary_role=config.summary_role)
        return Conversation(log, Thread(log, prompts.rule_signs, prompts.rules_heading))

    def begin(self, chat: Conversation) -> None:
        """Replaces the conversation; summaries that are being made for the old one are not used."""
        self.prefetch.stop()
        self.announcer.withdraw()
        self.summaries.begin_anew()
        self.retention = Retention(self.services.count)
        self.chat, self.answered = chat, None

    async def steer(self, chat: Conversation) -> None:
        """Makes current the conversation that a pin or an undo has given; writes its record and sends the events."""
        self.prefetch.stop()
        self.chat, self.answered = chat, None
        await self.records.write(chat)
        await self.services.outbox.flush()

    def is_current(self, chat: Conversation) -> bool:
        """Returns True while log, view and pins are those of this conversation."""
        now = self.chat
        # One request may hide the stored system prompt and the next may show it. That does not count as a change.
        view = replace(chat.view, hides_system=now.view.hides_system)
        return now.log is chat.log and now.view == view and now.steered is chat.steered

    async def ready_chat(self, *, hides_system: bool) -> Conversation:
        """Returns the current conversation. Resumes each new history once, from the record that matches it.

        Calls no provider.

        Args:
            hides_system: True if a factory's prompt replaces the stored system rows.
        """
        while True:
            chat = self.chat
            if not chat.adopted:
                await self._adopt(chat)
            elif chat.view.hides_system != hides_system:
                self.chat = replace(chat, view=replace(chat.view, hides_system=hides_system))
            elif uncounted := chat.log.characters_from(chat.view.frontier_row, uncounted=True):
                await in_thread(uncounted, chat.log.make_entries_from, chat.view.frontier_row)
            else:
                return chat

    async def _adopt(self, chat: Conversation) -> None:
        await self.host.counter.load()
        found, steered, must_write = await self.records.resume(chat)
        if self.chat is not chat:
            return
        self.chat = replace(chat, steered=steered, adopted=True)
        if found is not None:
            segment_tokens, summary_tokens = found.sizes
            cutting = replace(self.cutting, segment_tokens=segment_tokens, summary_tokens=summary_tokens)
            segments = Segments(chat.log, cutting, found.view.frontier)
            self.chat = replace(self.chat, segments=segments).with_view(found.view)
            self.summaries.compacted(found.view.shown, chat.log)
            self.services.totals.from_cache += sum(not shown.summary.fallback for shown in found.view.shown)
        if must_write:
            await self.records.write(self.chat, is_new=False)

    async def tokens(self) -> int:
        """Returns the tokens of the request as it would be sent now, as the provider counts; 0 while it is empty."""
        system = self.host.system
        if not len(self.chat.log) and not system.text:
            return 0
        chat = await self.ready_chat(hides_system=system.text is not None)
        return self.host.meter.correct(chat.rendering().tokens + system.tokens + self.retention.tokens)

    def observe(self, response: Mapping[str, Any], *, by_loop: bool) -> None:
        """Takes in an `llm:response` of a call that is not ours, or a `provider:error` of the loop.

        Events of another provider say nothing about the view.
        """
        name = response.get("provider")
        is_good = not by_loop and response.get("status", "ok") == "ok"
        if is_good and isinstance(name, str):
            self.summarizer.answered_elsewhere(name, response.get("model"))
        if isinstance(name, str) and self.host.is_another(name):
            return
        self.host.refusals.observe(response, by_loop=by_loop)
        if is_good and isinstance(usage := response.get("usage"), dict):
            self.host.meter.observe(usage)

    async def finish(self) -> None:
        """Starts no more summaries; waits some seconds for those under way, and stores them."""
        await self._within_end_time(self._finished, _FOR_FINISH)

    async def _finished(self) -> None:
        await self.prefetch.close()
        await self.summaries.close(_FOR_CALLS * self._seconds_left)
        self.announcer.withdraw()
        await self.services.outbox.flush()

    async def close(self, *others: Callable[[], Awaitable[None]]) -> None:
        """Ends all work, calls these others at the same time, and closes the store."""
        ending = (self.prefetch.close, self.summaries.close, self.services.outbox.close, self._release, *others)

        async def end_all() -> None:
            await asyncio.gather(*(end() for end in ending))

        await self._within_end_time(end_all)

    async def _release(self) -> None:
        await self.records.close()
        await self.services.store.close()

    async def _within_end_time(self, work: Callable[[], Awaitable[None]], share: float = 1.0) -> None:
        """Runs `work` for at most a share of the time left for the session's end; then abandons it."""
        began = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            await within(work, max(0.0, share * self._seconds_left - GRACE))
        self._seconds_left -= asyncio.get_running_loop().time() - began

    def plan_input(self, chat: Conversation, limits: RequestLimits) -> PlanInput:
        """Returns the input of a plan for this conversation."""

        def size_of(node: Node) -> int | None:
            shown = self.summaries.row_of(node, chat.log)
            return None if shown is None else shown.tokens

        return PlanInput(
            log=chat.log,
            segments=chat.segments,
            view=chat.view,
            limits=limits.own,
            pins=tuple(sorted(chat.steered.pins)),
            size_of=size_of,
        )
