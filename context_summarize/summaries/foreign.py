"""Foreign work in bounded time: whatever a provider raises or swallows, the caller goes on when its time is over."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from context_summarize.background import LOOK_SECONDS, until_done

T = TypeVar("T")

GRACE = 0.25
"""Seconds that cancelled foreign work gets for its end before it is left alone."""


class ProviderStopped(Exception):
    """Foreign code raised something that is no `Exception`, such as `CancelledError` or `SystemExit`."""

    @classmethod
    def of(cls, error: BaseException) -> ProviderStopped:
        """The error in words."""
        return cls(f"{type(error).__name__}: {error_text(error)}")


def error_text(error: BaseException) -> str:
    """The text of a foreign error, whose `__str__` may raise as well."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that breaks the report of itself is no reason to lose the report
        return "(its text cannot be read)"


def guarded(call: Callable[[], T]) -> T:
    """The result of a foreign call that is not awaited.

    Raises:
        ProviderStopped: it raised something that is no `Exception`.
    """
    try:
        return call()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ProviderStopped.of(error) from error


async def within(
    work: Awaitable[T],
    seconds: float,
    lingering: set[asyncio.Task[Any]],
    name: str,
    is_cancelled: Callable[[], bool] | None = None,
) -> T:
    """The result of foreign work, within `seconds`.

    `asyncio.timeout` would wait for work that ignores its cancellation. Here such work goes on in `lingering` until it
    ends. It has a task of its own, so that a cancellation of the caller and one that the work raises are told apart.

    Args:
        seconds: `math.inf` = as long as it takes.
        is_cancelled: whether the host has cancelled; looked at while the work takes long.

    Raises:
        TimeoutError: the time is over, or the host has cancelled.
        ProviderStopped: the work raised something that is no `Exception`.
    """

    def ended(task: asyncio.Task[T]) -> None:
        lingering.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio warns of an error that nobody read
        elif inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()  # cancelled before its first step; Python warns of a coroutine that nobody awaited

    task = asyncio.create_task(_awaited(work), name=name)
    lingering.add(task)
    task.add_done_callback(ended)
    try:
        first = seconds if is_cancelled is None else min(LOOK_SECONDS, seconds)
        await asyncio.wait({task}, timeout=first)
        if is_cancelled is not None and not task.done():
            await until_done({task}, None if math.isinf(seconds) else seconds - first, is_cancelled)
        if task.done():
            return task.result()
        raise TimeoutError(f"no answer within {seconds:g} s")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)


async def _awaited(work: Awaitable[T]) -> T:
    """The result; what is no `Exception` would end the event loop, or look like a cancellation of the caller."""
    try:
        return await work
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # somebody has cancelled the work, such as the end of the event loop
        raise ProviderStopped.of(error) from error
