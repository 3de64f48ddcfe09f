"""A part in a process of its own, with a time limit; what it has found by then counts."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from multiprocessing.connection import Connection
from typing import Any, Protocol

from benchmarks.speed.blocks import ObservedLoop
from benchmarks.speed.figures import Figure
from benchmarks.speed.profiles import Profiles

GRACE = 20.0
"""Seconds beyond the limit after which a process is ended from outside."""


class TimeUp(KeyboardInterrupt):
    """The limit has passed. A task that is hit by a `KeyboardInterrupt` ends the loop too; by others only itself."""


class Part(Protocol):
    """What is measured in one process. It is pickled on its way there."""

    @property
    def title(self) -> str:
        """A few words for the table."""

    def run(self, loop: ObservedLoop, profiles: Profiles | None) -> Coroutine[Any, Any, None]:
        """Measure; `figures` may be asked at any time."""

    def figures(self) -> list[Figure]:
        """What is known by now."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` after so many seconds, also within a call that never awaits, and again each second."""

    def up(number: int, frame: Any) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_limited(part: Part, seconds: float, loop: ObservedLoop, profile: bool = False) -> list[Figure]:
    """Figures of a part that ran in this process and loop, at most so long; tasks that the limit cut are left there."""
    profiles = Profiles() if profile else None
    loop.set_exception_handler(lambda _loop, _context: None)  # tasks that the limit ends have nothing to tell
    started = time.perf_counter()
    cut = False
    try:
        with time_limit(seconds):
            loop.run_until_complete(part.run(loop, profiles))
    except TimeUp:
        cut = True
    found = part.figures()
    if cut:
        found.append(Figure(f"{part.title}: cut, s", time.perf_counter() - started, note="by the time limit"))
    if profiles is not None:
        profiles.print()
    return found


def _child(part: Part, seconds: float, profile: bool, pipe: Connection) -> None:
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = lambda _unraisable: None  # the limit may hit a callback of the garbage collector
    found = run_limited(part, seconds, ObservedLoop(), profile)
    pipe.send(found)
    pipe.close()
    os._exit(0)  # threads and tasks that the limit has left behind would be waited for


def run_apart(part: Part, seconds: float, profile: bool = False) -> list[Figure]:
    """Figures of a part, measured in a fresh process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(part, seconds, profile, theirs))
    process.start()
    theirs.close()
    try:
        if ours.poll(seconds + GRACE):
            return list(ours.recv())
        return [Figure(f"{part.title}: no answer, s", seconds + GRACE, most=seconds, note="ended from outside")]
    except EOFError:
        process.join()
        return [Figure(f"{part.title}: failed", float("nan"), most=0, note=f"exit code {process.exitcode}")]
    finally:
        process.kill()
        process.join()
