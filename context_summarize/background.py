"""Work beside the event loop: long work is done in slices, and background tasks end in bounded time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Generator, Sequence, Set
from typing import Any, TypeAlias, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = TypeVar("P")
Steps: TypeAlias = Generator[None, None, T]
"""Work that yields after each short step, and returns its result at the end."""

SLICE_SECONDS = 0.005
"""How long a slice of work keeps the event loop."""
LOOK_SECONDS = 0.1
"""How often a wait looks whether the host has cancelled."""


def finished(steps: Steps[T]) -> T:
    """Do all the steps at once; what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def with_pauses(steps: Steps[T], pause: P) -> Generator[P, None, T]:
    """The steps, with this value at each pause: an iterator over something else may have long steps in it."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        yield pause


def fewest(most: int, is_enough: Callable[[int], Steps[bool]]) -> Steps[int]:
    """The smallest number of 0…`most` that is enough; `most`, which is not tried, if no smaller one is.

    What is enough stays so with more: about log2(`most`) numbers are tried.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if (yield from is_enough(middle)):
            high = middle
        else:
            low = middle + 1
    return low


async def in_slices(steps: Steps[T]) -> T:
    """Do the steps; the event loop has its turn every few milliseconds. What they return.

    A thread would not do: it takes the interpreter's lock from the event loop for as long at every turn.
    """
    end = time.perf_counter() + SLICE_SECONDS
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if time.perf_counter() >= end:
            await asyncio.sleep(0)
            end = time.perf_counter() + SLICE_SECONDS


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait at most half a second for their end, because foreign code may ignore a cancellation."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=0.5)
        if left:
            logger.warning("%d provider calls continue after the session's end: they ignore cancellation", len(left))


async def until_done(
    tasks: Set[asyncio.Task[Any]],
    seconds: float | None,
    stopped: asyncio.Event,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until the tasks have ended, at most so long (None = as long as it takes), or until `stopped` is set.

    Args:
        is_cancelled: looked at all the time, because some hosts tell of a cancellation only after the wait.
    """
    stop = asyncio.create_task(stopped.wait(), name="context-summarize:stop")
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    left = set(tasks)
    try:
        while left and not stop.done() and not is_cancelled():
            timeout = LOOK_SECONDS if end is None else min(LOOK_SECONDS, end - loop.time())
            if timeout <= 0:
                break
            done, _ = await asyncio.wait({*left, stop}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            left -= done
    finally:
        stop.cancel()
