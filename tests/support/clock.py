"""Virtual time: an event loop that never waits for a timer. Benchmarks use it where pytest is not installed."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable


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
