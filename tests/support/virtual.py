"""An event loop whose time passes only while everything waits: hours of latency in milliseconds, and exactly so."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Instead of waiting for the next timer, moves the clock to it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(None if timeout is None else 0)
        if not found and timeout:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """`asyncio.sleep`, timeouts and `loop.time()` are virtual; work for threads runs at once, in the loop's own."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run it now: a thread would end at a time of its own."""
        del executor
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it gets it
            done.set_exception(error)
        return done


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` does, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
