"""One session fed as an agent loop does, with what it showed, and the table that figures stand in."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.field.scenarios import recorded
from benchmarks.peers import Row
from context_summarize import SummarizingContextManager
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

WINDOW, OUTPUT = 40_000, 4_000
"""Tokens of the provider that all sessions run with."""
BUDGET = WINDOW - OUTPUT - 1_000
"""Tokens that a request may hold: what the default `safety_margin` leaves."""
PARTS = 5
"""A session's time per request is compared between its first and its last fifth."""


def session(copies: int) -> list[Row]:
    """The recording so many times; every user row is numbered, so that no two stretches are the same."""
    rows = recorded(copies=copies)
    for at, row in enumerate(rows):
        if row["role"] == "user":
            row["content"] = f"{row['content']} (line {at})"
    return rows


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
    waits: int = 0
    """Requests that waited."""
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
    run.boundaries, run.waited_ms, run.waits = told.boundaries, told.waited_s * 1000, told.waits
    run.calls, run.provider_input, run.provider_output = provider.calls, provider.input_tokens, provider.output_tokens
    return run


def new_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right")
    return table
