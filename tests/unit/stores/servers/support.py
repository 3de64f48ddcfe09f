"""What tests of stores on servers share: layered stores over one, and what the log says."""

from __future__ import annotations

import pytest

from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.shared import SharedStore
from tests.support.recorder import Clock

LOG = "context_summarize.stores.guard"
HANG = 0.5
"""Timeout in seconds where the server hangs; far more than one that works takes."""

PASSWORD = "hunter2-and-more"


class Open:
    """Makes layered stores over Redis and closes them at the end; each with the shared clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.made: list[LayeredStore] = []

    def __call__(self, address: str, timeout: float = 30) -> LayeredStore:
        shared = SharedStore(address)
        layered = LayeredStore(MemoryStore(), shared, name=shared.name, timeout=timeout, clock=self.clock)
        self.made.append(layered)
        return layered


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.levelname for line in caplog.records if line.name == LOG]
