"""Virtual time: sleeping takes no real seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from tests.support.clock import VirtualLoop

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
