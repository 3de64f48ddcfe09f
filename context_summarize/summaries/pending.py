"""Texts under way, by key: waited for at most once and for so long, and kept when nobody waits any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from context_summarize.background import end_tasks
from context_summarize.core.nodes import Summary


class Pending:
    """Work that outlives the request that started it. Its results reach the store by themselves."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Summary]] = {}
        self._waited: set[str] = set()
        self._stopped = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, key: str, make: Callable[[], Awaitable[Summary]]) -> None:
        """Start the work for a key unless it is under way, or has been done and waits to be taken.

        What an earlier request left behind as a digest is started anew: whoever failed then may answer now.
        """
        left = self._tasks.get(key)
        if self._closed or (left is not None and not _is_stale(left)):
            return

        async def work() -> Summary:
            return await make()

        self._waited.discard(key)  # it is other work now
        task = asyncio.create_task(work(), name=f"context-summarize:text:{key[:12]}")
        self._tasks[key] = task
        task.add_done_callback(_look)

    async def wait(self, keys: Iterable[str], seconds: float | None) -> None:
        """Wait until these are done, at most so long; None = as long as it takes.

        Keys that were waited for before, and were late then, are not waited for again.
        """
        asked = ((key, self._tasks.get(key)) for key in keys if key not in self._waited)
        fresh = {key: task for key, task in asked if task is not None and not task.done()}
        if not fresh or self._stopped.is_set():
            return
        stop = asyncio.create_task(self._stopped.wait(), name="context-summarize:stop")
        try:
            left = set(fresh.values())
            end = None if seconds is None else asyncio.get_running_loop().time() + seconds
            while left and not stop.done():
                timeout = None if end is None else end - asyncio.get_running_loop().time()
                if timeout is not None and timeout <= 0:
                    break
                done, _ = await asyncio.wait({*left, stop}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                left -= done
        finally:
            stop.cancel()
        self._waited.update(key for key, task in fresh.items() if not task.done())

    async def settled(self, keys: Iterable[str]) -> None:
        """Until nothing is under way for any of these keys. Nobody's request: it does not count as waited for."""
        while tasks := [task for key in keys if (task := self._tasks.get(key)) is not None and not task.done()]:
            await asyncio.wait(tasks)

    def take(self, key: str) -> Summary | None:
        """The result of a key whose work has ended, which is then forgotten; None while it is under way or failed."""
        task = self._tasks.get(key)
        if task is None or not task.done():
            return None
        del self._tasks[key]
        self._waited.discard(key)
        return None if task.cancelled() or task.exception() else task.result()

    def ended(self, key: str) -> bool:
        """True when nothing is under way for the key."""
        task = self._tasks.get(key)
        return task is None or task.done()

    def stop_waiting(self) -> None:
        """End every wait now: the host has cancelled. The work itself goes on."""
        self._stopped.set()

    def resume_waiting(self) -> None:
        """Waits are allowed again."""
        self._stopped.clear()

    def forget_done(self) -> None:
        """Forget what has ended and nobody took: its history is gone."""
        self._tasks = {key: task for key, task in self._tasks.items() if not task.done()}
        self._waited &= set(self._tasks)

    async def close(self) -> None:
        """Cancel what is under way and start nothing more."""
        self._closed = True
        tasks = list(self._tasks.values())
        self._tasks.clear()
        await end_tasks(tasks)


def _is_stale(task: asyncio.Task[Summary]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None or task.result().fallback)


def _look(task: asyncio.Task[Summary]) -> None:
    """An error that nobody waits for any more is not asyncio's business."""
    if not task.cancelled():
        task.exception()
