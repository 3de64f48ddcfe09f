"""Foreign work in bounded time: what is cancelled before its first step leaves no coroutine behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
from typing import Any

import pytest

from context_summarize.summaries.foreign import within


async def test_work_that_is_cancelled_before_its_first_step_is_closed() -> None:
    """Python would warn of a coroutine that nobody awaited."""

    async def foreign() -> None:
        await asyncio.sleep(3_600)

    work = foreign()
    lingering: set[asyncio.Task[Any]] = set()
    waiting = asyncio.create_task(within(work, 60, lingering, "foreign"))
    await asyncio.sleep(0)
    for task in list(lingering):
        task.cancel()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    gc.collect()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    assert lingering == set()
