"""Helpers for asyncio: long work in a thread, foreign work in bounded time, and the end of tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence, Set
from concurrent.futures import Future
from threading import Thread
from typing import Any, ParamSpec, TypeVar

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LOOK_SECONDS = 0.1
"""While it waits, code asks the host again after this many seconds whether it has cancelled."""
GRACE = 0.25
"""Seconds that cancelled foreign work gets to end before it is abandoned."""
LONG = 40_000
"""Characters of rows that take some ten milliseconds to read; any number of this size does. A thread reads more."""


async def in_thread(characters: int, do: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Returns the result of `do`, which reads this many characters: in a thread, or directly if they are few."""
    return do(*args, **options) if characters <= LONG else await asyncio.to_thread(do, *args, **options)


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits a moment for their end, because foreign code may ignore a cancellation."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=GRACE)
        if left:
            logger.warning("calls that ignore cancellation go on after the session's end: %d", len(left))


async def until_done(
    tasks: Set[asyncio.Task[Any]], seconds: float | None, is_cancelled: Callable[[], bool] | None = None
) -> None:
    """Waits until the tasks have ended, at most so long (None = as long as it takes). It cancels nothing.

    Args:
        is_cancelled: ends the wait. It is called often, because some hosts report a cancellation only afterwards.
    """
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while left := [task for task in tasks if not task.done()]:
        rest = None if end is None else end - loop.time()
        if (rest is not None and rest <= 0) or (is_cancelled is not None and is_cancelled()):
            return
        if is_cancelled is not None:
            rest = LOOK_SECONDS if rest is None else min(LOOK_SECONDS, rest)
        await asyncio.wait(left, timeout=rest)


class Stopped(Exception):
    """Foreign code raised something that is no `Exception`, such as `CancelledError` or `SystemExit`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error_text(error)}")


def error_text(error: BaseException) -> str:
    """Returns the text of a foreign error, whose `__str__` may raise as well."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the report of an error must not fail because its text does
        return "(its text cannot be read)"


async def in_own_thread(call: Callable[[], T]) -> T:
    """Returns the result of a foreign call in a thread of its own: one that blocks delays no other work and no exit."""
    future = Future[T]()
    future.set_running_or_notify_cancel()  # a caller that stops waiting does not end the call

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the caller that waits raises it
            future.set_exception(error)

    Thread(target=run, name="context-summarize:foreign", daemon=True).start()
    return await asyncio.wrap_future(future)


async def within(
    call: Callable[[], Awaitable[T]], seconds: float | None, is_cancelled: Callable[[], bool] | None = None
) -> T:
    """Returns the result of a foreign coroutine, within `seconds` (None = as long as it takes).

    `asyncio.timeout` would wait for work that ignores its cancellation; this function abandons such work. The work has
    its own task, so that a cancellation of the caller differs from one that the work raises.

    Args:
        is_cancelled: returns True once the host has cancelled, which ends the wait.

    Raises:
        TimeoutError: the time is over, or the host has cancelled.
        Stopped: the work raised something that is no `Exception`.
    """
    task = asyncio.create_task(awaited(call), name="context-summarize:foreign")
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # asyncio warns of an unread error
    try:
        await until_done({task}, seconds, is_cancelled)
        if not task.done():
            raise TimeoutError("cancelled by the host" if seconds is None else f"no answer within {seconds:g} s")
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)


async def awaited(call: Callable[[], Awaitable[T]]) -> T:
    """Returns the result of a foreign coroutine.

    Raises:
        Stopped: it raised something that is no `Exception`, which would end the event loop or look like our own
            cancellation.
    """
    try:
        return await call()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # the work is cancelled, for example at the end of the event loop
        raise Stopped(error) from error
