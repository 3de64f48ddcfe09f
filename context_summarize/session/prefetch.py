"""Work ahead of need: the texts of the next boundary are made in the background while the session goes on."""

from __future__ import annotations

import asyncio

from context_summarize.background import end_tasks
from context_summarize.core.nodes import Place
from context_summarize.core.view_state import ViewState
from context_summarize.events import Outbox
from context_summarize.session.compaction import Compactor
from context_summarize.session.limits import Request
from context_summarize.summaries.pending import Pending


class Prefetch:
    """Starts the texts of one history's next boundary, and those that are made of them once they are there."""

    def __init__(self, boundary: Compactor, pending: Pending, outbox: Outbox) -> None:
        self._boundary = boundary
        self._pending = pending
        self._outbox = outbox
        self._tried: set[Place] = set()
        """What was started for the next boundary: whoever failed then is asked again by the boundary, not before."""
        self._keys: list[str] = []
        self._seen: tuple[object, ...] | None = None
        self._begun: int | None = None
        self._task: asyncio.Task[None] | None = None
        self._late: asyncio.Task[None] | None = None
        """The task that a wait has given up."""
        self._closed = False

    def look(self, state: ViewState, request: Request, version: int, segments: int) -> None:
        """Start what can be made now. Called after a view has been served; returns at once.

        Args:
            version: of the history; grows with every row.
            segments: closed by now; with no more of them than the last time there is nothing new to make.
        """
        seen = (request.budget, request.system_tokens, segments)
        if self._closed or seen == self._seen:
            return
        self._seen = seen
        self._boundary.learn_prefetched()
        self._keys += self._boundary.start_prefetch(state, request, self._tried)
        if self._keys and self._begun is None:
            self._begun = version
        if self._keys and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._follow(state, request), name="context-summarize:ahead")

    def begun_before(self, version: int) -> bool:
        """True when the next boundary's work was begun at an earlier version of the history."""
        return self._begun is not None and self._begun < version

    @property
    def is_under_way(self) -> bool:
        """True while some of that work has not ended."""
        return self._task is not None and not self._task.done()

    async def settled(self, seconds: float) -> None:
        """Until that work has ended, at most so long; what was late once is not waited for again."""
        task = self._task
        if task is None or task is self._late:
            return
        done, _ = await asyncio.wait([task], timeout=seconds)
        self._late = None if done else task

    async def _follow(self, state: ViewState, request: Request) -> None:
        """Merges are planned once the texts below them are there."""
        while self._keys:
            keys, self._keys = self._keys, []
            await self._pending.settled(keys)
            self._boundary.learn_prefetched()
            self._keys += self._boundary.start_prefetch(state, request, self._tried)
            await self._outbox.flush()  # the next request, which would do it, may be long in coming

    def stop(self) -> None:
        """Plan nothing more for this boundary: it has been made, or its history is gone. Calls under way go on."""
        if self._task is not None:
            self._task.cancel()
        self._task, self._seen, self._begun = None, None, None
        self._tried.clear()
        self._keys.clear()

    async def close(self) -> None:
        """End the task, and begin no other: a request that is still being answered may look again."""
        self._closed = True
        task = self._task
        self.stop()
        await end_tasks([] if task is None else [task])
