"""Sessions of up to millions of tokens: calls, sizes of views, depth of merges, time per request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rich.console import Console

from benchmarks.memory.sessions import OUTPUT, WINDOW, Run, new_table, run_session, session
from context_summarize import SummarizingContextManager
from context_summarize.providers.counted import CountedProvider
from context_summarize.providers.offline import OfflineProvider
from context_summarize.stores.memory import MemoryStore
from context_summarize.tokens.counter import TokenCounter

PER_COPY = 120_000
"""Tokens of the recording, about."""


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
    table = new_table(
        f"Sessions in a {WINDOW:,}-token window, offline provider",
        *("tokens", "rows", "requests", "compactions", "calls", "read by provider", "÷ history", "written", "depth"),
    )
    views = new_table(
        "The same sessions: views and time",
        *("tokens", "view mean", "view max", "over budget", "summaries mean", "summaries max", "waited (requests)"),
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
                f"{run.waited_ms:,.0f} ms ({run.waits})",
                f"{run.cpu_ms[0]:.2f} ms",
                f"{run.cpu_ms[-1]:.2f} ms",
                f"{run.seconds:,.0f} s",
            ),
        )
        good = good and ratio <= 1.4 and run.depth <= 6 and not run.over_budget
    console.print(table)
    console.print(views)
    return good
