"""What is asked for between requests: a compaction now, a look at the next one, a change of the view."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

from context_summarize.core.plan import CompactionRequest, Plan
from context_summarize.errors import SteeringError
from context_summarize.session.compaction import MOST_ROUNDS, Compaction, Preview
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import Deadline
from context_summarize.session.requests import Requests
from context_summarize.session.steering import cut_again, pinned, pinned_messages, taken_back, unpinned

logger = logging.getLogger(__name__)


class OnDemand(Requests):
    """Requests, and what hosts and users ask for between them."""

    async def compact(self, focus: str | None) -> int:
        """Make a compaction now, down to `keep_recent`; the tokens that it saves, as the provider counts.

        The lock is not held while summaries are made: a request that comes meanwhile waits for them no longer than for
        any others. What it or a user changes in the view is what the compaction goes on with.
        """
        ask, wait, ready = CompactionRequest("manual", focus), Deadline(None, self._services.clock), None
        self._under_way += 1
        try:
            for _ in range(MOST_ROUNDS):
                async with self._lock:
                    if ready is None or not self._is_current(ready[1]):
                        ready = await self._ready(self._host.limits.last, is_due=True)
                        self._tasks.begin()
                    limits, chat = ready
                    before = self._used(chat, limits)
                    found = await self._compactor.run(chat, limits, ask, wait, partial(self._is_current, chat))
                    if not isinstance(found, Plan) and self._is_current(chat):
                        if isinstance(found, Compaction):
                            await self._commit(limits, found, wait)
                        await self._services.outbox.flush()
                        return before - self._used(self.chat, limits)
                if isinstance(found, Plan) and not await self._compactor.fetch(chat, limits, found, wait):
                    return 0
            logger.error("a compaction did not come to its end in %d rounds; the view stays as it is", MOST_ROUNDS)
            return 0
        finally:
            self._under_way -= 1
            self._services.totals.waited_for(wait.take())

    def _is_current(self, chat: Conversation) -> bool:
        """Whether history, view and pins are still those of this conversation."""
        now = self.chat
        return now.history is chat.history and now.view is chat.view and now.steered is chat.steered

    async def undo(self) -> int:
        """Go back to the view before the last compaction; the tokens that the request grows by.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit.
        """
        async with self._lock:
            while True:
                limits, chat = await self._ready(self._host.limits.last, is_due=True)
                if not chat.view.compactions:
                    raise SteeringError("there is no compaction to take back; undo works after one has been made")
                earlier = chat.earlier or await self.resumption.earlier(chat)
                if self.chat.history is chat.history:
                    break
            undone = self.resumption.undone(chat, earlier)
            back, told = taken_back(limits, chat, earlier, self._services.count, undone)
            cut_again(back, self._config.fan_in)
            self._tasks.compacted(back.view.shown)
            self._compactor.announcer.made(told)
            await self._steered(back)
            return told.after_tokens - told.before_tokens

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keep the rows of these messages verbatim from the next compaction on; the numbers of all that are pinned.

        Raises:
            SteeringError: a number names no message, or they take more than a tenth of the budget.
        """
        async with self._lock:
            limits, chat = await self._ready(self._host.limits.last, is_due=True)
            chat = pinned(chat, messages, limits.own.own_budget)
            await self._steered(chat)
            return pinned_messages(chat)

    async def unpin(self, messages: int | Iterable[int] | None) -> tuple[int, ...]:
        """Let go of the pins of these messages, or of all; the numbers of those that are still pinned.

        Raises:
            SteeringError: a number names no message.
        """
        async with self._lock:
            _, chat = await self._ready(self._host.limits.last, is_due=True)
            chat = unpinned(chat, messages)
            await self._steered(chat)
            return pinned_messages(chat)

    async def _steered(self, chat: Conversation) -> None:
        """Go on with what a user has changed: one assignment, then the record and the events."""
        self._prefetch.stop()
        self._chat, self._served = chat, None
        await self.records.write(chat)
        await self._services.outbox.flush()

    async def preview(self) -> Preview:
        """What the next compaction does, without making it or asking anybody."""
        async with self._lock:
            limits, chat = await self._ready(self._host.limits.last, is_due=True)
            return await self._compactor.preview(chat, limits, self._reason(chat, limits))

    async def is_due(self) -> bool:
        """True if the next request would make a compaction that is worth making. Starts nothing."""
        async with self._lock:
            limits, chat = await self._ready(self._host.limits.last)
            reason = self._reason(chat, limits)
            return reason is not None and (await self._compactor.preview(chat, limits, reason)).reason is not None
