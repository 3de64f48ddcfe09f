"""Threads in the hands of a test, in virtual time: nothing is waited for in real seconds, and nothing overtakes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import pytest

from tests.support.clock import VirtualLoop

T = TypeVar("T")


class Threads:
    """Stand in place of the threads of every pool, and of providers.

    The event loop does their work, in the order in which it comes.

    Args:
        turns: of the event loop, before a piece of work is done; 0: at once.
    """

    def __init__(self, turns: int = 0) -> None:
        self._turns = turns
        self._held: list[Callable[[], None]] = []
        self._to_hold = 0

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """As long as this lasts, no thread begins: the virtual clock would overtake it."""

        def submit(pool: Executor, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            return self._submit(partial(work, *args, **kwargs))

        with pytest.MonkeyPatch.context() as patch:
            for pools in Executor.__subclasses__():
                patch.setattr(pools, "submit", submit)
            patch.setattr("context_summarize.background.Thread", partial(_Thread, self._submit))
            yield

    def hang(self, pieces: int = sys.maxsize) -> None:
        """The next pieces of work are taken and not done, as by a disk that hangs."""
        self._to_hold = pieces

    def go_on(self) -> None:
        """Do what was held, and hold nothing any more."""
        held, self._held, self._to_hold = self._held, [], 0
        for job in held:
            job()

    def _submit(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()

        def job(turns: int = 0) -> None:
            if turns:
                asyncio.get_running_loop().call_soon(job, turns - 1)
            else:
                _do(work, future)

        if self._to_hold:
            self._to_hold -= 1
            self._held.append(job)
        else:
            job(self._turns)
        return future


class _Thread:
    """Stands in place of a thread that a provider of the host has to itself."""

    def __init__(self, submit: Callable[[Callable[[], Any]], Any], target: Callable[[], Any], **_: Any) -> None:
        self.start = partial(submit, target)


def _do(work: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - whoever awaits the future gets it
        future.set_exception(error)
    else:
        with suppress(RuntimeError):  # its loop has ended: nobody is told
            asyncio.get_running_loop()
            future.set_result(result)


def run_virtually(main: Coroutine[Any, Any, T], threads: Threads | None = None) -> T:
    """What `asyncio.run` does, in virtual time."""
    with (threads or Threads()).in_place(), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
