"""A disk that hangs: the threads that write history files, in the hands of a test."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from context_summarize.history_file import session


class Disk:
    """The threads of all history files that were named since the test began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[ThreadPoolExecutor] = []
        monkeypatch.setattr(session, "ThreadPoolExecutor", self._thread)

    def _thread(self, *args: Any, **settings: Any) -> ThreadPoolExecutor:
        made = ThreadPoolExecutor(*args, **settings)
        self.threads.append(made)
        return made

    @property
    def thread(self) -> ThreadPoolExecutor:
        """The one of the newest history file."""
        return self.threads[-1]

    def hang(self, gate: threading.Event) -> ThreadPoolExecutor:
        """Let the newest thread hang until the gate opens, once it has done what it was given before."""
        self.thread.submit(gate.wait)
        return self.thread

    def catch_up(self) -> None:
        """Wait until the newest thread has done what it was given."""
        self.thread.submit(str).result()
