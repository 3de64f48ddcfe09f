"""Foreign work in bounded time: whatever a provider raises or swallows, the caller goes on when its time is over."""

from __future__ import annotations

import asyncio
import inspect
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


async def within(
    work: Awaitable[T],
    seconds: float,
    lingering: set[asyncio.Task[Any]],
    name: str,
    is_cancelled: Callable[[], bool] | None = None,
) -> T:
    """The result of foreign work, within `seconds`.

    The work has a task of its own, so that a cancellation of the caller and one that the work raises by itself are told
    apart. Work that ignores its cancellation goes on in `lingering` until it ends; the caller does not wait for it.

    Args:
        seconds: `math.inf` = as long as it takes.
        is_cancelled: whether the host has cancelled; looked at while the work takes long.

    Raises:
        TimeoutError: the time is over, or the host has cancelled.
        ProviderStopped: the work raised something that is no `Exception`.
    """
    task = asyncio.create_task(_without_base_exceptions(work), name=name)
    lingering.add(task)
    task.add_done_callback(lingering.discard)
    task.add_done_callback(_read)
    task.add_done_callback(lambda _: _close_unstarted(work))
    try:
        await _ended(task, seconds, is_cancelled)
        if task.done():
            return task.result()
        raise TimeoutError(f"no answer within {seconds:g} s")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)


async def _ended(task: asyncio.Task[Any], seconds: float, is_cancelled: Callable[[], bool] | None) -> None:
    """Until the task has ended, at most so long, or until the host has cancelled."""
    first = seconds if is_cancelled is None else min(LOOK_SECONDS, seconds)
    await asyncio.wait({task}, timeout=first)
    if is_cancelled is not None and not task.done():
        await until_done({task}, seconds - first, asyncio.Event(), is_cancelled)


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


def _close_unstarted(work: Awaitable[Any]) -> None:
    """Let go of work whose task was cancelled before its first step; Python warns of a coroutine nobody awaited."""
    if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        work.close()


async def _without_base_exceptions(work: Awaitable[T]) -> T:
    try:
        return await work
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # somebody has cancelled the work, such as the end of the event loop
        # A cancellation of its own would look like one of the caller; the others would end the event loop.
        raise ProviderStopped.of(error) from error


def _read(task: asyncio.Task[Any]) -> None:
    """Take note of the outcome, so that asyncio does not warn of an error that nobody read."""
    if not task.cancelled():
        task.exception()
