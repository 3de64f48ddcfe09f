"""Prefetch: the summaries of the next compaction are made in the background while the session goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from context_summarize.background import end_tasks
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, to_make
from context_summarize.core.plan import Prefetched, next_plan
from context_summarize.core.view_size import PlanInput
from context_summarize.session.conversation import Conversation
from context_summarize.session.limits import RequestLimits, patience
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services


class Prefetch:
    """Starts the summaries of the next compaction, and the merges of them once they are there."""

    def __init__(
        self, tasks: SummaryRegistry, services: Services, scene: Callable[[Conversation, RequestLimits], PlanInput]
    ) -> None:
        self._tasks = tasks
        self._outbox = services.outbox
        self._patience = patience(services.config)
        self._scene = scene
        self._keys: list[str] = []
        """What was started and has not been followed up."""
        self._seen: tuple[object, ...] | None = None
        """What the last look saw: with nothing new there is nothing new to start."""
        self._followed: set[str] = set()
        """All that the task has followed for the next compaction."""
        self._begun: int | None = None
        """Rows of the history at the last request before the work for the next compaction began."""
        self._looked: tuple[History, int] | None = None
        """The history at the last look, and its rows then."""
        self._task: asyncio.Task[None] | None = None
        self._given_up: asyncio.Task[None] | None = None
        """The task that a wait has given up."""
        self._closed = False

    def look(self, chat: Conversation, limits: RequestLimits) -> None:
        """Start what can be made now; returns at once."""
        own = limits.own
        seen = (chat.history, chat.view, own.own_budget, own.view_room, len(chat.builder.leaves), self._tasks.version)
        if self._closed or limits.target is None or seen == self._seen:
            return
        self._seen = seen
        self._start(chat, limits)
        rows = len(chat.history)
        if self._keys and self._begun is None:
            # Rows that a session has grown by since its last request need no wait; a history taken up whole does.
            self._begun = self._looked[1] if self._looked and self._looked[0] is chat.history else rows
        self._looked = (chat.history, rows)
        if self._keys and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._follow(chat, limits), name="context-summarize:prefetch")

    def _start(self, chat: Conversation, limits: RequestLimits) -> None:
        """Start every summary whose children are known, once for each compaction."""
        tasks = self._tasks
        plan = next_plan(self._scene(chat, limits))
        unmade = {node.place: node for node in to_make(plan.missing, tasks.is_known)}
        first = [node for node in unmade.values() if all(map(tasks.is_known, node.children))]
        exact = all(node.children for node in first)
        for node in first:
            # A rest over nodes is wasted if estimates merge too much, or if more nodes follow.
            wasted = _is_rest_over_nodes(node) and not (exact and plan.reached)
            if wasted or node.key in self._followed:
                continue
            tasks.start(node, chat.builder, limits.target)
            self._keys.append(node.key)
            self._followed.add(node.key)

    def readiness(self, rows: int, usage: float) -> Prefetched:
        """Whether the texts of a compaction are being made already, and there is room to go on without them.

        Args:
            rows: of the history now.
            usage: share of the budget in use.
        """
        if self._begun is None or self._begun >= rows:
            return None
        has_room = self.is_under_way and usage < self._patience
        return "room" if has_room else "no room"

    @property
    def is_under_way(self) -> bool:
        """True while some of that work has not ended."""
        return self._task is not None and not self._task.done()

    async def settled(self, seconds: float) -> None:
        """Until that work has ended, at most so long; what was late once is not waited for again."""
        task = self._task
        if task is None or task is self._given_up:
            return
        done, _ = await asyncio.wait([task], timeout=seconds)
        self._given_up = None if done else task

    async def _follow(self, chat: Conversation, limits: RequestLimits) -> None:
        """Merges are planned once the texts below them are there."""
        while self._keys:
            keys, self._keys = self._keys, []
            await self._tasks.settled(keys)
            self._start(chat, limits)
            await self._outbox.flush()  # the next request, which would do it, may be long in coming

    def stop(self) -> None:
        """Plan nothing more for this compaction: it has been made, or its history is gone. Calls under way go on."""
        if self._task is not None:
            self._task.cancel()
        self._task, self._seen, self._begun = None, None, None
        self._keys.clear()
        self._followed.clear()

    async def close(self) -> None:
        """End the task, and begin no other: a request that is still being answered may look again."""
        self._closed = True
        task = self._task
        self.stop()
        await end_tasks([] if task is None else [task])


def _is_rest_over_nodes(node: Node) -> bool:
    return bool(node.children) and node.is_rest
