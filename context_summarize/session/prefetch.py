"""Prefetch: the summaries of the next compaction are made in the background while the session goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from context_summarize.background import end_tasks
from context_summarize.core.draft import PlanInput
from context_summarize.core.nodes import to_make
from context_summarize.core.plan import next_plan
from context_summarize.events import Outbox
from context_summarize.session.conversation import Conversation
from context_summarize.session.request_limits import RequestLimits
from context_summarize.summaries.jobs import Target
from context_summarize.summaries.registry import SummaryRegistry


class Prefetch:
    """Starts the summaries of the next compaction, and their merges once these summaries are known."""

    def __init__(
        self, summaries: SummaryRegistry, outbox: Outbox, plan_input: Callable[[Conversation, RequestLimits], PlanInput]
    ) -> None:
        self._summaries = summaries
        self._outbox = outbox
        self._plan_input = plan_input
        self._seen: tuple[object, ...] | None = None
        """The state at the last look. While nothing in it changes, there is nothing to start."""
        self._started: set[str] = set()
        """Keys started for the next compaction. One that fails is not started again before that compaction."""
        self._task: asyncio.Task[None] | None = None
        self._given_up_at: int | None = None
        """The registry's version when a wait timed out. Until it changes, `settled` does not wait again."""
        self._closed = False

    def look(self, chat: Conversation, limits: RequestLimits, target: Target) -> None:
        """Starts the summaries that can be started now; a task starts the others later. Waits for no provider."""
        seen = (chat.log, chat.view, limits.own, _leaves(chat), self._summaries.version)
        if self._closed or seen == self._seen:
            return
        self._seen = seen
        self._start(chat, limits, target)
        if self._task is not None:
            self._task.cancel()  # the calls under way go on: the registry holds them
        self._task = asyncio.create_task(self._follow(chat, limits, target), name="context-summarize:prefetch")

    async def _follow(self, chat: Conversation, limits: RequestLimits, target: Target) -> None:
        """Plans again whenever texts arrive, and starts the merges whose children are now known."""
        planned_at = self._summaries.version
        while True:
            await self._summaries.settled(self._started)
            if planned_at == self._summaries.version:
                return
            await self._outbox.flush()  # the next request, which would also do it, may come much later
            planned_at = self._summaries.version
            self._start(chat, limits, target)

    def _start(self, chat: Conversation, limits: RequestLimits, target: Target) -> None:
        """Starts summaries whose children are known; a small merge waits until nothing else is missing."""
        plan = next_plan(self._plan_input(chat, limits))
        unmade = {node.place: node for node in to_make(plan.missing, self._summaries.text_of)}
        first = [node for node in unmade.values() if all(map(self._summaries.text_of, node.children))]
        # The small merge waits because real sizes may make it needless, and because more nodes may join it.
        with_small = plan.reached and all(node.children for node in first)
        for node in first:
            is_small = 0 < len(node.children) < limits.own.fan_in
            if node.key not in self._started and (with_small or not is_small):
                self._started.add(node.key)
                self._summaries.start(node, chat.log, target)

    def is_busy(self, chat: Conversation) -> bool:
        """Returns True while summaries are made ahead, or if a new segment has no summary started yet."""
        is_new = self._seen is None or self._seen[3] != _leaves(chat)
        return is_new or (self._task is not None and not self._task.done())

    async def settled(self, seconds: float) -> None:
        """Waits at most this many seconds for the task."""
        if self._task is None or self._given_up_at == self._summaries.version:
            return
        done, _ = await asyncio.wait([self._task], timeout=seconds)
        self._given_up_at = None if done else self._summaries.version

    def stop(self) -> None:
        """Stops planning for this compaction: it has been made, or its history is gone. Calls under way go on."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._seen = None
        self._started.clear()

    async def close(self) -> None:
        """Ends the task, and starts no other, even if a request that is still running looks again."""
        self._closed = True
        task = self._task
        self.stop()
        await end_tasks([] if task is None else [task])


def _leaves(chat: Conversation) -> int:
    return len(chat.segments.leaves) if chat.segments else 0
