"""Requests of sessions that fill their window three times, with summaries in time or late."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from benchmarks.speed.blocks import Block, Found, Monitor, ObservedLoop
from benchmarks.speed.figures import (
    ADD_P50_MS,
    BLOCK_MS,
    Figure,
    percentile,
    request_p50_bar,
    request_p99_bar,
)
from benchmarks.speed.profiles import Profiles
from benchmarks.speed.provider import RequestClock, make_provider, pace
from benchmarks.speed.rows import rows, tokens_per_row
from context_summarize import SummarizingContextManager
from context_summarize.config import Config

FILLS = 3
REQUESTS = 4_000
"""Requests of one session, about; larger windows are asked for after every few assistant rows."""
LOOK = 16
"""After so many requests the size of the view is asked for, outside of what is timed."""
LATE = {"in-time": 0.0, "late": 0.1, "above": 0.35}
"""Share of the window by which a session grows while one summary is under way; with the largest one it stands above
its threshold about half of the time."""
THRESHOLD = Config().compact_threshold
REQUEST, ADD = "get_messages_for_request", "add_message"


@dataclass(slots=True)
class Session:
    """One session; its fields are what it has shown so far."""

    window: int
    variant: str
    samples: bool = False
    fills: float = FILLS
    late_requests: int = 0
    total: float = 0.0
    """Tokens of the whole history, about."""
    fed: int = 0
    """Rows added."""
    per_row: float = 0.0
    request_ms: list[float] = field(default_factory=list)
    add_ms: list[float] = field(default_factory=list)
    view_rows: list[int] = field(default_factory=list)
    looks: int = 0
    above: int = 0
    is_above: bool = False
    """At the last look."""
    above_ms: list[float] = field(default_factory=list)
    """Of the requests after a look that saw the view above the threshold."""
    above_rows: list[int] = field(default_factory=list)
    """Of their views."""
    compactions: int = 0
    digests: int = 0
    found: Found = field(default_factory=Found)

    @property
    def title(self) -> str:
        """Window and variant."""
        return f"{self.window // 1000}k {self.variant}"

    async def run(self, loop: ObservedLoop, profiles: Profiles | None) -> None:
        """Feed the rows as an agent loop does."""
        self.per_row = await tokens_per_row()
        count = round(self.fills * self.window / self.per_row)
        history = rows(count)
        self.total = count * self.per_row
        answers = sum(row["role"] == "assistant" for row in history)
        stride = max(1, answers // REQUESTS)
        if share := LATE[self.variant]:
            self.late_requests = max(1, pace(self.window, share, self.total / (answers // stride)))
        clock = RequestClock()
        provider = make_provider(self.window, clock, self.late_requests)
        # A request that waits would keep the clock from going on; what it waits for is late either way.
        patience = 0.0 if self.late_requests else 60.0
        manager = SummarizingContextManager(wait_seconds=patience)
        monitor = Monitor(loop, bar_ms=BLOCK_MS, samples=self.samples)
        self.found = monitor.found
        if profiles is not None:
            loop.wrap = profiles.in_thread
            profiles.start()
        with monitor.watching():
            await self._feed(manager, provider, history, stride, clock, monitor)
        if profiles is not None:
            profiles.stop()
        clock.now = 0
        await manager.close()

    async def _feed(
        self,
        manager: SummarizingContextManager,
        provider: Any,
        history: list[dict[str, Any]],
        stride: int,
        clock: RequestClock,
        monitor: Monitor,
    ) -> None:
        due = stride
        for row in history:
            if row["role"] == "assistant":
                due -= 1
            if not due:
                due = stride
                await self._request(manager, provider, monitor)
                clock.tick()
            monitor.label = ADD
            await asyncio.sleep(0)  # so that each call is a callback of its own
            ended = monitor.span()
            await manager.add_message(row)
            self.add_ms.append(ended().own * 1000)
            self.fed += 1
        statistics = await manager.statistics()
        self.compactions, self.digests = statistics.boundaries, statistics.digests

    async def _request(self, manager: SummarizingContextManager, provider: Any, monitor: Monitor) -> None:
        monitor.label = "between calls"
        await asyncio.sleep(0)
        monitor.label = REQUEST
        await asyncio.sleep(0)
        ended = monitor.span()
        view = await manager.get_messages_for_request(provider=provider)
        self.request_ms.append(ended().own * 1000)
        self.view_rows.append(len(view))
        if self.is_above:
            self.above_ms.append(self.request_ms[-1])
            self.above_rows.append(len(view))
        monitor.label = "between calls"
        await asyncio.sleep(0)
        if len(self.request_ms) % LOOK == 0:
            monitor.label = "get_token_count"
            await asyncio.sleep(0)
            self.looks += 1
            self.is_above = await manager.get_token_count() > THRESHOLD * (self.window - 5_000)
            self.above += self.is_above
            statistics = await manager.statistics()
            self.compactions, self.digests = statistics.boundaries, statistics.digests

    def figures(self) -> list[Figure]:
        """What is known by now."""
        name, found = self.title, self.found
        typical = percentile(self.view_rows, 0.5)
        above = 100 * self.above / self.looks if self.looks else 0.0
        note = (
            f"{len(self.request_ms):,} requests, {above:.0f} % above the threshold, {self.compactions} compactions,"
            f" {self.digests} fallbacks shown"
        )
        if self.late_requests:
            note += f", summaries {self.late_requests} requests late"
        bar = request_p50_bar(typical)
        return [
            Figure(f"{name}: history, % of {FILLS} windows", self._reached(), least=99, note=note),
            Figure(f"{name}: request p50, ms", percentile(self.request_ms, 0.5), bar, note=f"view p50 {typical} rows"),
            *self._above_figures(),
            Figure(f"{name}: request p99, ms", percentile(self.request_ms, 0.99), request_p99_bar(self.window)),
            Figure(f"{name}: request max, ms", max(self.request_ms, default=float("nan"))),
            *block_figures(name, found, BLOCK_MS),
            Figure(f"{name}: add_message p50, ms", percentile(self.add_ms, 0.5), ADD_P50_MS),
        ]

    def _above_figures(self) -> list[Figure]:
        """What a request takes while the view stands above the threshold, in sessions that stand there for long."""
        if self.variant != "above":
            return []
        typical = percentile(self.above_rows, 0.5)
        what, note = f"{self.title}: request p50 above threshold, ms", f"view p50 {typical} rows"
        return [Figure(what, percentile(self.above_ms, 0.5), request_p50_bar(typical), note=note)]

    def _reached(self) -> float:
        """Percent of the history that was fed."""
        return 100 * self.fed * self.per_row / (FILLS * self.window) if self.per_row else 0.0


def block_figures(name: str, found: Found, bar: float) -> list[Figure]:
    """The largest block of callbacks and of threads."""
    note = str(found.largest)
    if found.over:
        note += f"\n{found.over} of {found.callbacks:,} callbacks above {bar:.0f} ms"
    others = [block for block in found.by_call.values() if block is not found.largest and block.seconds * 1000 > bar]
    note += "".join(f"\nalso {block.seconds * 1000:.0f} ms, {block}" for block in sorted(others, key=_seconds)[::-1])
    return [
        Figure(f"{name}: largest block, ms", found.largest.seconds * 1000, bar, note=note),
        Figure(f"{name}: largest gap by threads, ms", found.gap.seconds * 1000, bar, note=_gap_note(found, bar)),
    ]


def _seconds(block: Block) -> float:
    return block.seconds


def _gap_note(found: Found, bar: float) -> str:
    return str(found.gap) if found.gap.seconds * 1000 > bar / 2 else ""
