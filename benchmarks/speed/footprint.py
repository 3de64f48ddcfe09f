"""Memory over the raw rows, and the time of the package's import beside amplifier_core's."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from itertools import islice

from benchmarks.speed.blocks import ObservedLoop
from benchmarks.speed.figures import MEMORY_RATIO, STARTUP_MS, Figure
from benchmarks.speed.profiles import Profiles
from benchmarks.speed.provider import RequestClock, make_provider
from benchmarks.speed.rows import endless, rows, tokens_per_row
from context_summarize import SummarizingContextManager

WINDOW = 60_000
EVERY = 40
"""Rows between two requests."""


def traced() -> int:
    """Bytes held by Python objects made since tracing began."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@dataclass(slots=True)
class Memory:
    """Bytes of a manager that was fed so many rows, over the bytes of those rows alone (the rank table aside)."""

    count: int
    alone: int = 0
    held: int = 0
    fed: int = 0
    where: str = ""

    title = "memory"

    async def run(self, loop: ObservedLoop, profiles: Profiles | None) -> None:
        """Weigh the rows alone, then a session of them."""
        del loop, profiles
        await tokens_per_row(200)
        tracemalloc.start()
        base = traced()
        raw = rows(self.count)
        self.alone = traced() - base
        del raw
        base = traced()
        provider = make_provider(WINDOW, RequestClock(), 0)
        manager = SummarizingContextManager()
        for at, row in enumerate(islice(endless(), self.count)):
            await manager.add_message(row)
            if at % EVERY == 0:
                await manager.get_messages_for_request(provider=provider)
            self.fed = at + 1
        self.held = traced() - base
        largest = tracemalloc.take_snapshot().statistics("lineno")[:6]
        self.where = "\n".join(
            f"{line.size / self.alone:.2f} {line.traceback[0].filename.rpartition('/')[2]}:{line.traceback[0].lineno}"
            for line in largest
        )
        tracemalloc.stop()
        await manager.close()

    def figures(self) -> list[Figure]:
        """The ratio."""
        if not self.held:
            return [Figure("memory: rows reached", self.fed, least=self.count)]
        name = f"memory over {self.count:,} raw rows ({self.alone / 2**20:.0f} MB), ratio"
        return [Figure(name, self.held / self.alone, MEMORY_RATIO, note=self.where)]


def startup(runs: int) -> list[Figure]:
    """What our import adds to amplifier_core's, the smallest of several fresh interpreters."""
    # amplifier_core loads its message models lazily; a session that uses any provider has them loaded.
    code = (
        "import time; t = time.perf_counter(); import amplifier_core, amplifier_core.message_models;"
        " u = time.perf_counter(); import context_summarize; print(u - t, time.perf_counter() - u)"
    )
    found = []
    for _ in range(runs):
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        found.append((float(out[0]) * 1000, float(out[1]) * 1000))
    core, ours = min(first for first, _ in found), min(second for _, second in found)
    return [Figure("import of the package, ms", ours, STARTUP_MS, note=f"amplifier_core alone {core:.0f} ms")]
