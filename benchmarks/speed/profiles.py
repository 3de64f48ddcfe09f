"""cProfile over the loop's thread and the threads that it uses."""

from __future__ import annotations

import cProfile
import pstats
import threading
from collections.abc import Callable
from typing import Any

LINES = 25


class Profiles:
    """One profile for the loop's thread, one for each other thread."""

    def __init__(self) -> None:
        self._loop = cProfile.Profile()
        self._threads: dict[int, cProfile.Profile] = {}

    def start(self) -> None:
        """Profile the calling thread from here on."""
        self._loop.enable()

    def stop(self) -> None:
        """No longer."""
        self._loop.disable()

    def in_thread(self, call: Callable[[], Any]) -> Any:
        """Run a call under its thread's profile; without one where Python allows a single profiler (3.12 and later)."""
        profile = self._threads.setdefault(threading.get_ident(), cProfile.Profile())
        try:
            profile.enable()
        except ValueError:
            return call()
        try:
            return call()
        finally:
            profile.disable()

    def print(self, lines: int = LINES) -> None:
        """The functions that take most, by cumulative and by own time."""
        self.stop()
        print("--- the loop's thread")
        stats = pstats.Stats(self._loop).strip_dirs()
        stats.sort_stats("cumulative").print_stats(lines)
        stats.sort_stats("tottime").print_stats(lines)
        threads = [profile for profile in self._threads.values() if profile.getstats()]
        if threads:
            print("--- threads")
            pstats.Stats(*threads).strip_dirs().sort_stats("cumulative").print_stats(lines)
