"""What resuming a session from its stored summaries takes."""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from rich.console import Console

from benchmarks.memory.sessions import OUTPUT, WINDOW, new_table, session, summaries
from context_summarize import SummarizingContextManager
from context_summarize.providers.counted import CountedProvider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.stores.open import open_store
from context_summarize.tokens.counter import TokenCounter

RESUME_TARGET_MS = 300


@dataclass(frozen=True, slots=True)
class Resume:
    """Milliseconds of a resume in a manager of its own, over a store that is opened for it."""

    rows: int
    set_messages: float
    first_view: float
    cpu: float
    """Of both, in all threads."""
    second_view: float
    calls: int
    """The most that any of the runs took."""
    summaries: int


async def measure_resume(total: int, folder: Path, runs: int = 5) -> Resume:
    """The quickest of several resumes of a session of so many rows, after the session itself has been run."""
    counter = TokenCounter()
    await counter.load()
    path = str(folder / f"{total}.sqlite")
    rows = session(-(-total // 1_330))[:total]
    provider = CountedProvider(OfflineProvider(counter.count, context_window=WINDOW, max_output_tokens=OUTPUT))
    async with _manager(path) as manager:
        for at, row in enumerate(rows):
            if at % 20 == 0:
                await manager.get_messages_for_request(provider=provider)
            await manager.add_message(row)
        await manager.get_messages_for_request(provider=provider)
        await manager.settle()  # what a session has begun ahead when it is left is there when it is taken up again
    # As hosts keep a session: without its system rows, through JSON.
    saved = json.dumps([row for row in rows if row["role"] != "system"])
    del rows
    found = [await _resume_once(path, saved, provider) for _ in range(runs)]
    best = min(found, key=lambda resume: resume.set_messages + resume.first_view)
    return replace(best, calls=max(resume.calls for resume in found))


async def _resume_once(path: str, saved: str, provider: CountedProvider) -> Resume:
    rows = json.loads(saved)
    calls = provider.calls
    gc.collect()
    async with _manager(path) as manager:
        times, cpu = [time.perf_counter()], time.process_time()
        await manager.set_messages(rows)
        times.append(time.perf_counter())
        view = await manager.get_messages_for_request(provider=provider)
        times.append(time.perf_counter())
        cpu = (time.process_time() - cpu) * 1000
        await manager.get_messages_for_request(provider=provider)
        times.append(time.perf_counter())
        first, second, third = ((b - a) * 1000 for a, b in pairwise(times))
        shown = len(summaries(view))
        return Resume(len(rows), first, second, cpu, third, provider.calls - calls, shown)


@asynccontextmanager
async def _manager(path: str) -> AsyncIterator[SummarizingContextManager]:
    """A manager over a file; at its end it does not wait for its prefetch calls."""
    manager = SummarizingContextManager(store=open_store(path))
    try:
        yield manager
    finally:
        await manager.close()


def show_resumes(console: Console, sizes: Sequence[int]) -> bool:
    """Print resumes of these sizes; False when one asks the provider, or 10,000 rows take too long."""
    table = new_table(
        "Resume: set_messages and the first view, SQLite store, ranks loaded, best of 5",
        *("rows", "set_messages", "first view", "together", "CPU", "second view", "provider calls", "summaries shown"),
    )
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            seen = asyncio.run(measure_resume(size, Path(folder)))
            together = seen.set_messages + seen.first_view
            table.add_row(
                *(f"{seen.rows:,}", f"{seen.set_messages:,.0f} ms", f"{seen.first_view:,.0f} ms"),
                *(f"{together:,.0f} ms", f"{seen.cpu:,.0f} ms", f"{seen.second_view:.1f} ms"),
                *(f"{seen.calls}", f"{seen.summaries}"),
            )
            good = good and not seen.calls and (size > 10_000 or together < RESUME_TARGET_MS)
    console.print(table)
    return good
