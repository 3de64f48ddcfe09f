"""Virtual time: sleeping takes no real seconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")
_sleep = asyncio.sleep


class LoopClock:
    """The time of the running event loop."""

    def now(self) -> float:
        """Returns the loop's time in seconds."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """Sleeps as `asyncio.sleep` does, even while an adapter has replaced that."""
        return await _sleep(seconds, result)

    def pass_time(self, seconds: float) -> None:
        """Advances virtual time, for callers that cannot await."""
        cast(VirtualLoop, asyncio.get_running_loop()).pass_time(seconds)


class _Jump(selectors.DefaultSelector):
    """Selects what is ready and never waits for a timer: it advances the clock instead."""

    def __init__(self, pass_time: Callable[[float], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)  # no timer is set: only a thread can wake the loop
        ready = super().select(0)
        if not ready and timeout > 0:
            self._pass_time(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is left to do."""

    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__(_Jump(self.pass_time))

    def time(self) -> float:
        """Returns the virtual seconds since the start."""
        return self._seconds

    def pass_time(self, seconds: float) -> None:
        self._seconds += seconds


class _WithoutThreads(VirtualLoop):
    """A virtual loop that runs an executor's work at once: the clock would overtake a thread."""

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 (whoever awaits the future gets it)
            future.set_exception(error)
        return future


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine like `asyncio.run`, in virtual time."""
    with asyncio.Runner(loop_factory=_WithoutThreads) as runner:
        return runner.run(main)
