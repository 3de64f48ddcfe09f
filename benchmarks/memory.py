"""What a long memory costs and keeps: sessions of millions of tokens, resuming, planted facts, waiting.

`python -m benchmarks.memory` measures all four, `python -m benchmarks.memory lengths resume facts waiting` the ones
named. The recorded airline session is repeated with other ids and words, so that no summary serves two repetitions.
Times depend on the machine and on what else it does; counts, sizes and shares do not.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.field.model import CODE, StandIn, Traits, facts_in, plant
from benchmarks.field.scenarios import recorded
from benchmarks.peers import Row, text_of
from context_summarize import SummarizingContextManager
from context_summarize.config import Config
from context_summarize.providers.counted import CountedProvider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.open import open_store
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

WINDOW, OUTPUT = 40_000, 4_000
"""Tokens of the provider that all sessions run with."""
BUDGET = WINDOW - OUTPUT - 1_000
"""Tokens that a request may hold: what the default `safety_margin` leaves."""
PER_COPY = 120_000
"""Tokens of the recording, about."""
PARTS = 5
"""A session's time per request is compared between its first and its last fifth."""
RESUME_TARGET_MS = 300
FACTS_TARGET = 0.9
WAITING_TARGET = 0.05


def session(copies: int) -> list[Row]:
    """The recording so many times; every user row is numbered, so that no two stretches are the same."""
    rows = recorded(copies=copies)
    for at, row in enumerate(rows):
        if row["role"] == "user":
            row["content"] = f"{row['content']} (line {at})"
    return rows


# --- sessions of some length ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Run:
    """What one session showed."""

    history_tokens: int
    rows: int
    requests: int = 0
    calls: int = 0
    provider_input: int = 0
    provider_output: int = 0
    depth: int = 0
    """Highest level of a summary shown: how often a fact was merged at most."""
    over_budget: int = 0
    view_tokens: list[int] = field(default_factory=list)
    summary_tokens: list[int] = field(default_factory=list)
    """Of all summaries in each view."""
    boundaries: int = 0
    waited_ms: float = 0.0
    cpu_ms: list[float] = field(default_factory=list)
    """Per request, of each fifth of the session: the rows added, the view, and the summaries made meanwhile."""
    seconds: float = 0.0


def summaries(view: Sequence[Row]) -> list[Row]:
    """The rows of a view that hold summaries."""
    return [row for row in view if (row.get("metadata") or {}).get("source") == "context-summarize"]


async def run_session(rows: Sequence[Row], *, provider: Any, manager: SummarizingContextManager) -> Run:
    """Feed the rows as an agent loop does, one view before every assistant row."""
    counter = TokenCounter()
    await counter.load()
    run = Run(sum(measure(row, counter.count) for row in rows), len(rows))
    known: dict[str, int] = {}

    def size(row: Row) -> int:
        text = row["content"]
        if text not in known:
            known[text] = measure(row, counter.count)
        return known[text]

    gc.collect()
    started, cpu, asked = time.perf_counter(), time.process_time(), 0
    for at, row in enumerate(rows, 1):
        if row["role"] == "assistant":
            view = await manager.get_messages_for_request(provider=provider)
            await manager.settle()  # between two turns of a session there is time
            run.requests += 1
            run.view_tokens.append(await manager.get_token_count())
            run.over_budget += run.view_tokens[-1] > BUDGET
            shown = summaries(view)
            run.summary_tokens.append(sum(map(size, shown)))
            run.depth = max([run.depth, *(row["metadata"].get("level", 0) for row in shown)])
        await manager.add_message(row)
        await asyncio.sleep(0)
        if at * PARTS // len(rows) > len(run.cpu_ms):
            now = time.process_time()
            run.cpu_ms.append((now - cpu) * 1000 / max(1, run.requests - asked))
            cpu, asked = now, run.requests
    run.seconds = time.perf_counter() - started
    told = await manager.statistics()
    run.boundaries, run.waited_ms = told.boundaries, told.waited_s * 1000
    run.calls, run.provider_input, run.provider_output = provider.calls, provider.input_tokens, provider.output_tokens
    return run


async def measure_length(copies: int) -> Run:
    """A session of so many copies, with the offline provider."""
    counter = TokenCounter()
    await counter.load()
    provider = CountedProvider(OfflineProvider(counter.count, context_window=WINDOW, max_output_tokens=OUTPUT))
    manager = SummarizingContextManager(store=MemoryStore())
    try:
        return await run_session(session(copies), provider=provider, manager=manager)
    finally:
        await manager.close()


def show_lengths(console: Console, tokens: Sequence[int]) -> bool:
    """Print sessions of these lengths; False if a limit is not met."""
    table = _table(
        f"Sessions in a {WINDOW:,}-token window, offline provider",
        *("tokens", "rows", "requests", "compactions", "calls", "read by provider", "÷ history", "written", "depth"),
    )
    views = _table(
        "The same sessions: views and time",
        *("tokens", "view mean", "view max", "over budget", "summaries mean", "summaries max", "waited"),
        *("CPU first fifth", "CPU last fifth", "wall"),
    )
    good = True
    for length in tokens:
        run = asyncio.run(measure_length(max(1, round(length / PER_COPY))))
        ratio = run.provider_input / run.history_tokens
        name = f"{run.history_tokens:,}"
        table.add_row(
            *(name, f"{run.rows:,}", f"{run.requests:,}", f"{run.boundaries:,}", f"{run.calls:,}"),
            *(f"{run.provider_input:,}", f"{ratio:.2f}", f"{run.provider_output:,}", f"{run.depth}"),
        )
        views.add_row(
            *(name, f"{sum(run.view_tokens) / run.requests:,.0f}", f"{max(run.view_tokens):,}", f"{run.over_budget}"),
            *(f"{sum(run.summary_tokens) / run.requests:,.0f}", f"{max(run.summary_tokens):,}"),
            *(
                f"{run.waited_ms:,.0f} ms",
                f"{run.cpu_ms[0]:.2f} ms",
                f"{run.cpu_ms[-1]:.2f} ms",
                f"{run.seconds:,.0f} s",
            ),
        )
        good = good and ratio <= 1.4 and run.depth <= 6 and not run.over_budget
    console.print(table)
    console.print(views)
    return good


# --- resuming -------------------------------------------------------------------------------------------------------


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
    table = _table(
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


# --- planted facts --------------------------------------------------------------------------------------------------


async def measure_facts(
    copies: int, facts: int, seed: int, settings: Mapping[str, Any]
) -> tuple[Run, dict[str, tuple[int, int]]]:
    """(the session, kind of fact → how many of how many are in the last view) with a summariser that keeps 95 %."""
    counter = TokenCounter()
    await counter.load()
    model = StandIn(counter.count, Traits(start_seconds=0, read_seconds=0, write_seconds=0), seed)

    async def answer(request: Any) -> str:
        texts = {message.role: text_of(message.model_dump()) for message in request.messages}
        return await model.ask(texts["user"], texts["system"], request.max_output_tokens)

    scripted = ScriptedProvider(then=answer, context_window=WINDOW, max_output_tokens=OUTPUT)
    provider = CountedProvider(scripted)
    rows, planted = plant(recorded(copies=copies), facts, seed)
    manager = SummarizingContextManager(store=MemoryStore(), **settings)
    try:
        run = await run_session(rows, provider=provider, manager=manager)
        view = await manager.get_messages_for_request(provider=provider)
    finally:
        await manager.close()
    held = frozenset().union(*(facts_in(text_of(row)) for row in view))
    kinds = dict.fromkeys(fact.kind for fact in planted)
    of = {kind: [fact.value for fact in planted if fact.kind == kind] for kind in kinds}
    return run, {kind: (len(held.intersection(values)), len(values)) for kind, values in of.items()}


def show_facts(console: Console, copies: int, facts: int, seeds: Sequence[int], settings: Mapping[str, Any]) -> bool:
    """Print what is left of planted facts; False when it is less than the target, on average."""
    table = _table(
        f"Planted facts in the last view, {WINDOW:,}-token window, a summariser that keeps 95 %, "
        + (", ".join(f"{key}: {value}" for key, value in settings.items()) or "defaults"),
        *("seed", "tokens", "identifiers", "plain words", "all", "calls", "depth", "view mean"),
    )
    shares = []
    for seed in seeds:
        run, kept = asyncio.run(measure_facts(copies, facts, seed, settings))
        held, planted = (sum(part) for part in zip(*kept.values(), strict=True))
        shares.append(held / planted)
        parts = [f"{a} of {b}" for _, (a, b) in sorted(kept.items(), key=lambda item: item[0] != CODE)]
        table.add_row(
            *(f"{seed}", f"{run.history_tokens:,}", *parts, f"{shares[-1]:.1%}", f"{run.calls:,}", f"{run.depth}"),
            f"{sum(run.view_tokens) / run.requests:,.0f}",
        )
    console.print(table)
    console.print(f"Mean of {len(shares)} seeds: {sum(shares) / len(shares):.1%}\n")
    return sum(shares) / len(shares) >= FACTS_TARGET


# --- waiting --------------------------------------------------------------------------------------------------------


async def measure_waiting(turn: float, call: float, prefetch: bool) -> tuple[float, float, int, int]:
    """(summed waiting, longest, requests that waited, calls) of a session in real time, in seconds."""
    counter = TokenCounter()
    await counter.load()
    offline = OfflineProvider(counter.count, context_window=WINDOW, max_output_tokens=OUTPUT)

    async def answer(request: Any) -> Any:
        await asyncio.sleep(call)
        return await offline.complete(request)

    provider = ScriptedProvider(then=answer, context_window=WINDOW, max_output_tokens=OUTPUT)
    settings: dict[str, Any] = {} if prefetch else {"prefetch_threshold": None}
    manager = SummarizingContextManager(store=MemoryStore(), **settings)
    try:
        for row in session(1):
            if row["role"] == "assistant":
                await manager.get_messages_for_request(provider=provider)
                await asyncio.sleep(turn)
            await manager.add_message(row)
        told = await manager.statistics()
        return told.waited_s, told.longest_wait_s, told.waits, provider.calls
    finally:
        await manager.close()


def show_waiting(console: Console, turn: float, call: float) -> bool:
    """Print the waiting with and without work ahead of need; False when it saves too little."""
    table = _table(
        f"Waiting, a turn of {turn * 1000:g} ms and a summary call of {call * 1000:g} ms",
        *("prefetch_threshold", "total wait", "longest wait", "requests that waited", "calls"),
    )
    sums = []
    for prefetch in (False, True):
        waited, longest, waits, calls = asyncio.run(measure_waiting(turn, call, prefetch))
        name = f"{Config().prefetch_threshold} (default)" if prefetch else "none"
        table.add_row(name, f"{waited * 1000:,.0f} ms", f"{longest * 1000:,.0f} ms", f"{waits}", f"{calls}")
        sums.append(waited)
    console.print(table)
    share = sums[1] / sums[0]
    console.print(f"With work ahead of need: {share:.1%} of the waiting without\n")
    return share <= WAITING_TARGET


# --- all of it ------------------------------------------------------------------------------------------------------


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right")
    return table


def main() -> int:
    """Print the tables; exit 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="lengths, resume, facts, waiting; default: all")
    parser.add_argument("--tokens", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--copies", type=int, default=4, help="of the recording that the facts are planted in")
    parser.add_argument("--facts", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=NUMBER", help="settings, for the facts")
    parser.add_argument("--turn", type=float, default=0.005, help="seconds of one turn, for the waiting")
    parser.add_argument("--call", type=float, default=0.1, help="seconds of one summary call")
    options = parser.parse_args()
    settings = {key: json.loads(value) for key, _, value in (item.partition("=") for item in options.set)}
    console = Console(width=None if sys.stdout.isatty() else 140)
    shows: dict[str, Callable[[], bool]] = {
        "lengths": lambda: show_lengths(console, options.tokens),
        "resume": lambda: show_resumes(console, options.rows),
        "facts": lambda: show_facts(console, options.copies, options.facts, options.seeds, settings),
        "waiting": lambda: show_waiting(console, options.turn, options.call),
    }
    if unknown := set(options.parts) - set(shows):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(shows)}")
    console.print(f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    met = [(part, shows[part]()) for part in options.parts or shows]
    missed = [part for part, good in met if not good]
    console.print(f"Not met: {', '.join(missed)}" if missed else "Every limit is met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
