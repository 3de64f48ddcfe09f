"""Stands where a host's coordinator would: records events, names providers, and moves a clock."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from amplifier_core.models import HookResult

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "airline-desk.jsonl"


def recording() -> list[dict[str, Any]]:
    """The recorded airline session."""
    return [json.loads(line) for line in EXAMPLE.read_text("utf-8").splitlines()]


class Recorder:
    """A coordinator with hooks that record; pass it as the manager's first argument."""

    def __init__(self, providers: dict[str, Any] | None = None, session_id: str | None = None) -> None:
        self.session_id = session_id
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.providers = providers or {}
        self.hooks = self
        self.cancellation, self.is_cancelled = self, False

    async def emit(self, name: str, data: dict[str, Any]) -> None:
        self.events.append((name, data))

    def get(self, mount_point: str) -> dict[str, Any]:
        return self.providers if mount_point == "providers" else {}

    def of(self, name: str) -> list[dict[str, Any]]:
        """Payloads of the events of this name."""
        return [data for event, data in self.events if event == name]

    def count(self, name: str) -> int:
        """How many events of this name have come."""
        return len(self.of(name))

    def names(self) -> list[str]:
        """Names of all events, in order."""
        return [name for name, _ in self.events]

    @property
    def compactions(self) -> int:
        """How many compactions there have been."""
        return self.count("context:compaction")


class Screen(Recorder):
    """A host with a screen."""

    def __init__(self, parent_id: str | None = None, providers: dict[str, Any] | None = None) -> None:
        super().__init__(providers)
        self.parent_id = parent_id
        self.lines: list[tuple[str, str]] = []

    async def process_hook_result(self, result: HookResult, event: str, hook: str) -> HookResult:
        self.lines.append((result.user_message_level, result.user_message or ""))
        return result


class SlowHooks(Recorder):
    """Hooks that take a turn of the event loop before and after they have heard."""

    async def emit(self, name: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        await super().emit(name, data)
        await asyncio.sleep(0)


class Clock:
    """Seconds that pass when they are told to, and when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 1_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
