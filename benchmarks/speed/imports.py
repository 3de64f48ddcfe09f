"""Long histories that come at once: the first request after an import, and resuming with a record."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.blocks import Found, Monitor, ObservedLoop, Span
from benchmarks.speed.figures import IMPORT_BLOCK_MS, IMPORT_SECONDS, RESUME_SECONDS, Figure
from benchmarks.speed.profiles import Profiles
from benchmarks.speed.provider import RequestClock, make_provider
from benchmarks.speed.rows import Row, rows, tokens_per_row
from benchmarks.speed.sessions import block_figures
from context_summarize import SummarizingContextManager

WINDOW = 200_000


def steps(most: int, first: int = 2_000) -> list[int]:
    """Sizes on the way to the largest: each four times the last one, so that a limit shows how far it went."""
    found = [size for at in range(16) if (size := first * 4**at) < most]
    return [*found, most]


async def timed(monitor: Monitor, label: str, call: Any) -> Span:
    """One call, told apart from what stands around it."""
    monitor.label = label
    await asyncio.sleep(0)
    ended = monitor.span()
    await call
    span = ended()
    monitor.label = "between calls"
    await asyncio.sleep(0)
    return span


@dataclass(slots=True)
class Import:
    """The first request of imported rows, without a provider."""

    most: int
    by: str = "set_messages"
    """`set_messages`, or `add_message` for a loop of it."""
    samples: bool = False
    stepwise: bool = True
    reached: int = 0
    doing: str = ""
    taking: float = 0.0
    asking: float = 0.0
    found: Found = field(default_factory=Found)
    before: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """How many, and how."""
        return f"import by {self.by}"

    async def run(self, loop: ObservedLoop, profiles: Profiles | None) -> None:
        """One size after the other."""
        await tokens_per_row(200)
        history = rows(self.most)
        for size in steps(self.most) if self.stepwise else [self.most]:
            monitor = Monitor(loop, bar_ms=IMPORT_BLOCK_MS, samples=self.samples)
            self.doing = f"{size:,} rows"
            if profiles is not None and size == self.most:
                loop.wrap = profiles.in_thread
                profiles.start()
            with monitor.watching():
                await self._one(monitor, history[:size])
            if profiles is not None:
                profiles.stop()
            self.found = monitor.found
            self.reached = size
            self.before.append(f"{size:,}: {self.taking + self.asking:.1f} s")

    async def _one(self, monitor: Monitor, history: list[Row]) -> None:
        manager = SummarizingContextManager()
        if self.by == "set_messages":
            taken = await timed(monitor, "set_messages", manager.set_messages(history))
        else:
            taken = await timed(monitor, "add_message loop", _add(manager, history))
        asked = await timed(monitor, "first request", manager.get_messages_for_request(token_budget=WINDOW))
        self.taking, self.asking = taken.own, asked.own
        await manager.close()

    def figures(self) -> list[Figure]:
        """Of the largest size that got through."""
        name = f"import, {self.by}, {self.reached:,} rows"
        if not self.reached:
            return [Figure(f"{self.title}: rows reached", 0, least=self.most, note=f"was at {self.doing}")]
        note = ", ".join([*self.before, *([f"then {self.doing}"] if self.reached < self.most else [])])
        return [
            Figure(f"{self.title}: rows reached", self.reached, least=self.most, note=note),
            Figure(f"{name}: rows taken, s", self.taking),
            Figure(f"{name}: first request, s", self.asking),
            Figure(f"{name}: together, s", self.taking + self.asking, IMPORT_SECONDS),
            *block_figures(name, self.found, IMPORT_BLOCK_MS),
        ]


async def _add(manager: SummarizingContextManager, history: list[Row]) -> None:
    for row in history:
        await manager.add_message(row)
        await asyncio.sleep(0)


@dataclass(slots=True)
class Resume:
    """A new manager over a store that holds summaries and a record of the same history."""

    most: int
    samples: bool = False
    reached: int = 0
    doing: str = ""
    seconds: float = 0.0
    calls: int = 0
    found: Found = field(default_factory=Found)
    before: list[str] = field(default_factory=list)

    title = "resume"

    async def run(self, loop: ObservedLoop, profiles: Profiles | None) -> None:
        """One size after the other."""
        await tokens_per_row(200)
        history = rows(self.most)
        for size in steps(self.most):
            self.doing = f"{size:,} rows"
            with tempfile.TemporaryDirectory() as folder:
                store = str(Path(folder) / "summaries.sqlite")
                await self._first(store, history[:size])
                await self._again(store, history[:size], loop, profiles)
            self.reached = size
            self.before.append(f"{size:,}: {self.seconds:.2f} s")

    async def _first(self, store: str, history: list[Row]) -> None:
        provider = make_provider(WINDOW, RequestClock(), 0)
        manager = SummarizingContextManager(cache=store)
        await manager.set_messages(history)
        await manager.get_messages_for_request(provider=provider)
        await manager.settle()
        await manager.close()

    async def _again(self, store: str, history: list[Row], loop: ObservedLoop, profiles: Profiles | None) -> None:
        provider = make_provider(WINDOW, RequestClock(), 0)
        manager = SummarizingContextManager(cache=store)
        await manager.prepare()
        monitor = Monitor(loop, bar_ms=IMPORT_BLOCK_MS, samples=self.samples)
        if profiles is not None:
            loop.wrap = profiles.in_thread
            profiles.start()
        with monitor.watching():
            taken = await timed(monitor, "set_messages", manager.set_messages(history))
            asked = await timed(monitor, "first request", manager.get_messages_for_request(provider=provider))
        if profiles is not None:
            profiles.stop()
        self.seconds, self.found = taken.own + asked.own, monitor.found
        self.calls = (await manager.statistics()).calls
        await manager.close()

    def figures(self) -> list[Figure]:
        """Of the largest size that got through."""
        name = f"resume, {self.reached:,} rows"
        return [
            Figure("resume: rows reached", self.reached, least=self.most, note=", ".join(self.before) or self.doing),
            Figure(f"{name}: set_messages and first request, s", self.seconds, RESUME_SECONDS),
            Figure(f"{name}: provider calls", self.calls, note="0 where all of it was found again"),
            *block_figures(name, self.found, IMPORT_BLOCK_MS),
        ]
