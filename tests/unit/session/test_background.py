"""Foreign work in bounded time: how soon a cancellation is seen, and how long cancelled work may go on."""

from __future__ import annotations

import asyncio
import threading
from unittest.mock import Mock

import pytest

from context_summarize.background import end_tasks, in_thread, until_done, within
from tests.support.virtual import run_virtually


def test_a_wait_asks_its_host_some_ten_times_a_second_whether_it_has_cancelled():
    """Some hosts tell of it afterwards alone."""

    async def wait() -> int:
        task, asked = asyncio.create_task(asyncio.sleep(1)), Mock(return_value=False)
        await until_done({task}, None, asked)
        return asked.call_count

    assert 9 <= run_virtually(wait()) <= 12


@pytest.mark.parametrize(("seconds", "tidied"), [(0.2, True), (0.3, False)])
@pytest.mark.parametrize("how", ["a wait ends", "the session ends"])
def test_cancelled_work_has_a_quarter_of_a_second_to_end(how, seconds, tidied):
    """Then it is abandoned."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(seconds)
            ended.set()

    async def run() -> None:
        if how == "a wait ends":
            with pytest.raises(TimeoutError, match="no answer within 1 s"):
                await within(work, 1)
        else:
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            await end_tasks([task])
        assert ended.is_set() is tidied
        await ended.wait()

    run_virtually(run())


@pytest.mark.parametrize(("characters", "by_thread"), [(4_000, False), (400_000, True)])
async def test_a_thread_reads_long_rows_alone(characters, by_thread):
    found = await in_thread(characters, threading.current_thread)
    assert (found is not threading.current_thread()) is by_thread
