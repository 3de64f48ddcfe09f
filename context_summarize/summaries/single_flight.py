"""At most one call per key under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from context_summarize.background import end_tasks
from context_summarize.errors import SummaryUnavailable

T = TypeVar("T")


class SingleFlight:
    """At most one piece of work per key under way; whoever asks meanwhile shares it.

    The work goes on when the one who asked is cancelled: its result still reaches the store.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """The result of `make()`, started now unless it is under way already."""
        if self._closed:
            raise SummaryUnavailable("the session has ended", kind="cancelled", attempts=0)
        task = self._tasks.get(key)
        if task is None:

            async def work() -> object:
                return await make()

            task = asyncio.create_task(work(), name=f"context-summarize:{key[:12]}")
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        try:
            return cast(T, await asyncio.shield(task))
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if task.cancelled() and not (asker is not None and asker.cancelling()):
                # The work was cancelled, not the one who asks: by `close()`, or by a provider from within.
                raise SummaryUnavailable("the call was cancelled", kind="cancelled", attempts=1) from None
            raise

    def _forget(self, key: str, task: asyncio.Task[object]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()  # an error that nobody waits for any more is not asyncio's business

    async def close(self) -> None:
        """Cancel what is under way and start nothing more."""
        self._closed = True
        await end_tasks(list(self._tasks.values()))
