"""Stands between a session and a store that may fail, hang or be away: how long it is waited for, when it is tried."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REFILL = 0.1
"""Share of the passing time that may be spent on waiting once the first `timeout` seconds are used up."""


class StoreGuard:
    """Bounds every wait for one store, and asks nothing of a store that does not answer.

    Args:
        name: what the log calls the store.
        timeout: seconds that one call, and all that wait together, may take.
        retry_after: seconds without calls after a failure.
        clock: seconds, for `retry_after`.
    """

    def __init__(self, name: str, timeout: float, retry_after: float, clock: Callable[[], float]) -> None:
        self._name = name
        self._timeout = timeout
        self._retry_after = retry_after
        self._clock = clock
        self._retry_at: float | None = None
        """When the store may be tried again; None while it works."""
        self._trying = False
        self._patience = timeout
        self._patience_at = 0.0
        """Time of the event loop at which `_patience` was right."""
        self._waiting = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def working(self) -> bool:
        """False from a failure until a trial has succeeded."""
        return self._retry_at is None

    def may_ask(self) -> bool:
        """True while the store works, and when the next trial is due and nobody is at it."""
        return self._retry_at is None or (not self._trying and self._clock() >= self._retry_at)

    def try_now(self) -> None:
        """Make the next trial due."""
        if self._retry_at is not None:
            self._retry_at = self._clock()

    async def ask(self, call: Callable[[], Coroutine[Any, Any, T]], otherwise: T) -> T:
        """What the store answers; `otherwise` when it is not asked, fails, or the time for waiting is up.

        A call that nobody waits for any more goes on until `timeout`: what it reads may still be of use.
        """
        if not self.may_ask():
            return otherwise
        task = self.start(self.attempt(call, otherwise))
        await self.wait(task)
        return task.result() if task.done() and not task.cancelled() else otherwise

    async def wait(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task as long as waiting is allowed now. What passes is spent, once for all who wait together."""
        await asyncio.sleep(0)  # the call's own time starts first, so that it is judged before its caller goes on
        now = asyncio.get_running_loop().time()
        if not self._waiting:
            # A pause, in which nobody waits, makes patience whole again.
            fresh = self._patience + _REFILL * (now - self._patience_at) if self.working else self._timeout
            self._patience, self._patience_at = min(self._timeout, fresh), now
        self._waiting += 1
        try:
            await asyncio.wait({task}, timeout=max(0.0, self._patience_at + self._patience - now))
        finally:
            self._waiting -= 1
            now = asyncio.get_running_loop().time()
            self._patience, self._patience_at = max(0.0, self._patience - (now - self._patience_at)), now

    async def attempt(self, call: Callable[[], Coroutine[Any, Any, T]], otherwise: T) -> T:
        """One call, from which it is learnt whether the store works; `otherwise` when it fails."""
        if not self.may_ask():
            return otherwise
        trial = not self.working
        if trial:
            self._trying = True
        try:
            result = await self.bounded(call, self._timeout)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, memory stands in, and `_failed` says so
            if trial or self.working:  # a call that was under way when another one failed has nothing to add
                self._failed(error)
            return otherwise
        finally:
            if trial:
                self._trying = False
        if trial:
            self._retry_at = None
            logger.info("%s is back", self._name)
        return result

    async def bounded(self, call: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """The result of a call that may take `seconds`; one that ignores its cancellation is left behind.

        Raises:
            TimeoutError: it took longer.
            ConnectionError: it was cancelled from within.
        """
        task = self.start(call())
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            late = not task.done()
            task.cancel()
        if late:
            raise TimeoutError(f"no answer within {seconds:g} s")
        if task.cancelled():
            raise ConnectionError("the call was cancelled")
        return task.result()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that is held until it ends, and ended by `end`."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # an error that nobody waits for any more is not asyncio's business

    def _failed(self, error: Exception) -> None:
        if self._retry_at is None:
            text = str(error) or type(error).__name__
            # No traceback: the texts of a store's errors are clean of secrets, their causes may not be.
            logger.warning(
                "%s; summaries are kept in memory meanwhile, and the store is tried again every %g s: "
                "see that it is there and can be read and written",
                text if self._name in text else f"{self._name}: {text}",
                self._retry_after,
            )
        self._retry_at = self._clock() + self._retry_after

    async def end(self, seconds: float) -> None:
        """Cancel what is under way and wait for its end, at most `seconds`."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
