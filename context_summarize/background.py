"""Work beside the event loop: long work is done in a thread, and background tasks end in bounded time."""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Callable, Sequence, Set
from copy import copy
from typing import Any, ParamSpec, TypeVar

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LOOK_SECONDS = 0.1
"""How often a wait looks whether the host has cancelled."""
LONG = 40_000
"""Characters of rows that take some ten milliseconds to read: work on more is done in a thread."""


async def in_thread(characters: int, do: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """What this makes of texts of so many characters: at once where they are short, else in a thread."""
    return do(*args, **options) if characters <= LONG else await asyncio.to_thread(do, *args, **options)


def copied(thing: T, *parts: str) -> T:
    """A copy with lists, dictionaries and sets of its own, which hold the same things; so have the named parts."""
    other = copy(thing)
    for name, value in vars(thing).items():
        if isinstance(value, list | dict | set | array | bytearray):
            setattr(other, name, copy(value))
        elif name in parts and value is not None:
            setattr(other, name, copied(value))
    return other


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
