"""A request, from its limits to its rows: the conversation is resumed, indexed, compacted where due, and served."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from context_summarize.core.plan import CompactionRequest, Prefetched, Reason
from context_summarize.messages.rows import JsonRow
from context_summarize.session.announcing import Shown
from context_summarize.session.compaction import Compaction, Compactor
from context_summarize.session.conversation import Conversation, derive_sizes, with_prompt, with_view
from context_summarize.session.limits import Deadline, Host, RequestLimits, Wanted
from context_summarize.session.prefetch import Prefetch
from context_summarize.session.prompt_cache import PromptCache
from context_summarize.session.records import Records
from context_summarize.session.resume import Resumption
from context_summarize.session.retention import Retention
from context_summarize.session.serving import Server
from context_summarize.session.steering import compact_from, compacted, is_held
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services


class Requests:
    """Holds the conversation and answers requests about it, one at a time; rows may be added during any wait."""

    def __init__(self, services: Services, tasks: SummaryRegistry, compactor: Compactor, host: Host) -> None:
        self._services = services
        self._config = services.config
        self._tasks = tasks
        self._host = host
        self._compactor = compactor
        self._prefetch = Prefetch(tasks, services, compactor.scene)
        self.records = Records(services.store, services.prompts, services.config, host.session_id)
        self.resumption = Resumption(self.records, compactor, tasks, services.config)
        self._server = Server(services.outbox, host.meter, services.count)
        self._retention = Retention(services.count)
        self._lock = asyncio.Lock()
        self._chat: Conversation | None = None
        self.paused = False
        self._under_way = 0
        """Compactions that are being made."""
        self._indexed_from = min(self._config.compact_threshold, self._config.prefetch_from or 1.0)
        """Share of the budget from which on segments are cut: below it no plan needs them."""
        self._served: tuple[object, ...] | None = None
        """The request that was served last; a correction of the measuring is not in it."""
        self._late_at: int | None = None
        """The registry's version when summaries were late."""
        self._cache = PromptCache(services.clock)

    # --- the conversation -------------------------------------------------------------------------------------------

    @property
    def chat(self) -> Conversation:
        """The conversation as it is now."""
        if self._chat is None:
            raise RuntimeError("no conversation yet; begin() gives one")
        return self._chat

    def begin(self, chat: Conversation) -> None:
        """Go on with another conversation. It takes no lock: what is being made for the old one comes to nothing."""
        if self._chat is not None:
            self._prefetch.stop()
            self._compactor.announcer.withdraw(0, len(self._chat.history), 0.0)
            self._tasks.forget_history()
        self._chat, self._served = chat, None

    def forget(self) -> None:
        """The session has been cleared: what was refused may be asked again, what does not fit is told again."""
        self._tasks.forget_refusals()
        self._server.forget()

    # --- one request ------------------------------------------------------------------------------------------------

    async def rows(self, wanted: Wanted) -> list[JsonRow]:
        """The rows for the next request, within the budget."""
        async with self._lock:
            wait, cold = Deadline(self._config.wait_seconds, self._services.clock), self._cache.is_cold(self.chat)
            is_last, wanted = False, await self._narrowed(wanted)
            while True:
                limits, chat = await self._ready(wanted)
                early = cold and self._is_near(chat, limits)
                if early and not is_held(chat, self._config, limits.budget, self._used(chat, limits)):
                    cold = False
                    await self._compacted(chat, limits, CompactionRequest("cold_cache"), wait)
                    continue
                reason = self._reason(chat, limits)
                if reason is None or self._is_decided(chat, limits):
                    break
                ask = CompactionRequest(reason, prefetched=self._prefetched(chat, limits))
                if await self._compacted(chat, limits, ask, wait):
                    if is_last or not self._retention.update(self.chat, wanted.retained):
                        break
                    is_last = True  # reminders that it has summarised come back whole, and take room
            rows = self._serve(limits)
            self._look_ahead(self.chat, limits)
            return rows

    async def tokens(self) -> int:
        """Tokens of the request as it would go out now. It takes no lock: a status line must not wait."""
        system = self._host.system
        if not len(self.chat.history) and not system.text:
            return 0
        await self._resumed(system.text is not None)
        return self._host.meter.correct(self._server.view(self.chat).tokens() + system.tokens + self._retention.tokens)

    # --- its parts --------------------------------------------------------------------------------------------------

    async def _narrowed(self, wanted: Wanted) -> Wanted:
        """A provider that refuses the very request that was served last gets a smaller one, whatever we measure."""
        chat = self.chat
        if not wanted.hard_fit or self._served is None or self._served[:2] != (chat.history, len(chat.history)):
            return wanted
        limits, chat = await self._ready(wanted)
        return replace(wanted, token_budget=max(1, min(limits.budget, self._used(chat, limits) - 1)))

    async def _ready(self, wanted: Wanted, *, is_due: bool = False) -> tuple[RequestLimits, Conversation]:
        """The limits of a request, and the conversation, resumed; indexed if a compaction is near, or is due."""
        if not self._host.is_cancelled():
            self._tasks.resume_waiting()
        while True:
            history = self.chat.history
            limits = await self._host.limits.read(wanted, self._retention.tokens)
            await self._resumed(limits.system_prompt is not None, limits.own.own_budget)
            if self._retention.update(self.chat, wanted.retained):
                continue
            if self.chat.history is history:
                derive_sizes(self.chat, self._config, limits.budget)
                if is_due or self._used(self.chat, limits) >= self._indexed_from * limits.budget:
                    await self.chat.advance()
                    await self._compactor.prepare(self.chat, limits)
            if self.chat.history is history:
                return limits, self.chat

    async def _resumed(self, hides_system: bool, own_budget: int | None = None) -> None:
        """Once per history: take up the longest recorded compaction that matches it, without a provider call."""
        if not self._host.counter.loaded:
            await self._host.counter.load()
        chat = self.chat
        if not chat.adopted:
            found = await self.resumption.find(chat, own_budget, lambda: self._is_waiting_for_a_record(chat))
            if found is not None and self._is_waiting_for_a_record(chat):
                view = found.view
                self._chat = replace(with_view(chat, view, self._services.count, hides_system), steered=found.steered)
                if found.record is not None:
                    self.resumption.cut(self.chat, found.record)
                    self._tasks.compacted(view.shown)
                    self._services.totals.from_cache += sum(not shown.summary.fallback for shown in view.shown)
        self._chat = with_prompt(self.chat, self._services.count, hides_system)
        await self.chat.convert()

    def _is_waiting_for_a_record(self, chat: Conversation) -> bool:
        return self.chat.history is chat.history and not self.chat.adopted

    def _used(self, chat: Conversation, limits: RequestLimits) -> int:
        """Tokens of the request as it would go out now, as the provider counts."""
        return limits.used(self._server.view(chat).tokens())

    def _reason(self, chat: Conversation, limits: RequestLimits) -> Reason | None:
        used, config = self._used(chat, limits), self._config
        if used > limits.budget:
            return "must_fit"
        due = config.auto_compact and not self.paused and used >= compact_from(chat, config, limits.budget)
        return "threshold" if due else None

    def _prefetched(self, chat: Conversation, limits: RequestLimits) -> Prefetched:
        """Whether the texts of a compaction are being made already, and there is room to go on without them."""
        self._look_ahead(chat, limits)  # what has closed since the last request is part of it
        return self._prefetch.readiness(len(chat.history), self._used(chat, limits) / limits.budget)

    def _look_ahead(self, chat: Conversation, limits: RequestLimits) -> None:
        """Near the threshold: have the next compaction's summaries made in the background."""
        if self._is_near(chat, limits) and not self._host.is_cancelled():
            self._prefetch.look(chat, limits)

    def _is_near(self, chat: Conversation, limits: RequestLimits) -> bool:
        """Whether the next compaction's summaries may be made before it is due."""
        threshold, is_automatic = self._config.prefetch_from, self._config.auto_compact and not self.paused
        return threshold is not None and is_automatic and self._used(chat, limits) >= threshold * limits.budget

    async def _compacted(
        self, chat: Conversation, limits: RequestLimits, ask: CompactionRequest, wait: Deadline
    ) -> bool:
        """Make a compaction if one is worth making; False if the history was replaced meanwhile: begin anew."""
        self._under_way += 1
        try:
            found = await self._compactor.run(chat, limits, ask, wait, lambda: self.chat.history is chat.history)
        finally:
            self._under_way -= 1
            self._services.totals.waited_for(wait.take())
        if self.chat.history is not chat.history:
            return False
        self._late_at = self._tasks.version if found == "late" else None
        if isinstance(found, Compaction):
            await self._commit(limits, found, wait)
        return True

    async def _commit(self, limits: RequestLimits, made: Compaction, wait: Deadline) -> None:
        """Swap the view; events and record follow. The state changes after the last await that can fail."""
        before = self.chat
        rows_before = len(self._server.view(before))
        self._prefetch.stop()
        self._chat = compacted(before, made.view, self.records.hash_of(before.history, made.view))
        before.groups.forget_before(made.view.frontier_row)
        self._tasks.compacted(made.view.shown)
        self._compactor.committed()
        self._services.totals.compactions += 1
        self._services.totals.from_cache += made.from_cache
        view = self._server.view(self.chat)
        shown = Shown(limits.used(view.tokens()), len(view), rows_before, len(before.history))
        self._compactor.announcer.made(made.told(limits.budget, shown, wait.since()))
        await self.records.write(self.chat)

    def _request(self, chat: Conversation, limits: RequestLimits) -> tuple[object, ...]:
        """What tells one request from the next."""
        return (chat.history, len(chat.history), chat.view, limits.budget, limits.system_prompt)

    def _is_decided(self, chat: Conversation, limits: RequestLimits) -> bool:
        """True for the request that was served last, without news of late summaries: hosts may ask three times."""
        return self._served == self._request(chat, limits) and self._late_at in (None, self._tasks.version)

    def _serve(self, limits: RequestLimits) -> list[JsonRow]:
        chat = self.chat
        request = self._request(chat, limits)
        if self._served != request:
            self._served = request
            self._cache.served(chat)
            self._compactor.served()
            self._services.totals.requests += 1
        return self._server.rows(chat, limits, self._retention.rows())

    # --- steering and the end ---------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Make no compaction and no summary by ourselves, except where a request would not fit."""
        self.paused = True
        self._prefetch.stop()

    def resume(self) -> None:
        """Go on after `pause()`."""
        self.paused, self._served = False, None

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._under_way > 0

    async def settled(self, seconds: float) -> None:
        """Until what is being prefetched is there, at most so long."""
        await self._prefetch.settled(seconds)

    async def close(self) -> None:
        """End what is under way."""
        await self._prefetch.close()
        await self._tasks.close()
        await self._services.outbox.close()
        await self.records.close()
