"""`StoreGuard`: how long a session waits for a store that may fail, hang or be away, and when it tries again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from context_summarize.awake import AwakeClock

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REFILL = 0.1
"""Share of the passing time that may be spent on waiting once the first `timeout` seconds are used up."""
_TRIAL = 0.1
"""Share of `timeout` that callers wait for a store that has failed; its trial goes on for the whole `timeout`."""


class StoreGuard:
    """Bounds every wait for one store, and does not ask a store that does not answer.

    Time in which this process was stopped, or its event loop blocked, is not counted as waiting.

    Args:
        name: what the log calls the store.
        timeout: seconds that one call may take, and that all callers together may wait.
        retry_after: seconds without calls after a failure.
        clock: seconds, for `retry_after`.
        recovered: called when the store works again.
    """

    def __init__(
        self,
        name: str,
        timeout: float,
        retry_after: float,
        clock: Callable[[], float],
        recovered: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._timeout = timeout
        self._retry_after = retry_after
        self._clock = clock
        self._recovered = recovered
        self._retry_at: float | None = None
        """When the store may be tried again; None while it works."""
        self._trying = False
        self._patience = timeout
        self._awake = AwakeClock()
        self._patience_at = 0.0
        """Time of `_awake` at which `_patience` was computed."""
        self._waiting = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def working(self) -> bool:
        """False from a failure until a trial succeeds."""
        return self._retry_at is None

    def may_ask(self) -> bool:
        """True while the store works, or when the next trial is due and none is under way."""
        return self._retry_at is None or (not self._trying and self._clock() >= self._retry_at)

    def try_now(self) -> None:
        """Make the next trial due."""
        if self._retry_at is not None:
            self._retry_at = self._clock()

    async def ask(self, call: Callable[[], Coroutine[Any, Any, T]], otherwise: T) -> T:
        """The store's answer; `otherwise` when it is not asked, fails, or the time for waiting is up.

        When nobody waits for a call any more, it goes on until `timeout`: its result may still be kept in memory.
        """
        if not self.may_ask():
            return otherwise
        task = self.start(self.attempt(call, otherwise))
        await self.wait(task)
        return task.result() if task.done() and not task.cancelled() else otherwise

    async def wait(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task as long as waiting is allowed now. Callers that wait at the same time spend the time once."""
        await asyncio.sleep(0)  # the call's own timeout starts first, so that it ends before its caller goes on
        now = self._awake.time()
        if not self._waiting:
            # While nobody waits, the time for waiting refills. A store that hangs makes nobody wait for each trial.
            fresh = self._patience + _REFILL * (now - self._patience_at)
            self._patience = min(self._timeout, fresh) if self.working else _TRIAL * self._timeout
            self._patience_at = now
        self._waiting += 1
        try:
            await self._awake.wait({task}, self._patience_at + self._patience)
        finally:
            self._waiting -= 1
            now = self._awake.time()
            self._patience, self._patience_at = max(0.0, self._patience - (now - self._patience_at)), now

    async def attempt(self, call: Callable[[], Coroutine[Any, Any, T]], otherwise: T) -> T:
        """One call, whose outcome tells whether the store works; `otherwise` when it fails."""
        if not self.may_ask():
            return otherwise
        trial = not self.working
        if trial:
            self._trying = True
        try:
            result = await self.bounded(call, self._timeout)
        except Exception as error:  # noqa: BLE001 - memory serves instead, whatever the store raises; `_failed` logs it
            if trial or self.working:  # another call has already reported the failure
                self._failed(error)
            return otherwise
        finally:
            if trial:
                self._trying = False
        if trial:
            self._retry_at = None
            self._patience, self._patience_at = self._timeout, self._awake.time()
            logger.info("%s works again", self._name)
            self._recovered()
        return result

    async def bounded(self, call: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """The result of a call that may take `seconds`; nobody waits for a call that ignores its cancellation.

        Raises:
            TimeoutError: it took longer.
            ConnectionError: it was cancelled from within.
        """
        task = self.start(call())
        try:
            await self._awake.wait({task}, self._awake.time() + seconds)
        finally:
            late = not task.done()
            task.cancel()
        if late:
            raise TimeoutError(f"no answer within {seconds:g} s")
        if task.cancelled():
            raise ConnectionError("the call was cancelled")
        return task.result()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that is referenced until it ends, and that `end` cancels."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # or asyncio logs an error that nobody waits for

    def _failed(self, error: Exception) -> None:
        if self._retry_at is None:
            text = str(error) or type(error).__name__
            # No traceback: the texts of a store's errors hold no secrets, but their causes may.
            logger.warning(
                "%s; summaries are kept in memory meanwhile, and the store is tried again every %g s: "
                "check that it is there and can be read and written",
                text if self._name in text else f"{self._name}: {text}",
                self._retry_after,
            )
        self._retry_at = self._clock() + self._retry_after

    async def end(self, seconds: float) -> None:
        """Cancel the calls under way and wait for their end, at most `seconds`."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
