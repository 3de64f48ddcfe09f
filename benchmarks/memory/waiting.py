"""How long requests wait for summaries in real time, with prefetch and without."""

from __future__ import annotations

import asyncio
from typing import Any

from rich.console import Console

from benchmarks.memory.sessions import OUTPUT, WINDOW, new_table, session
from context_summarize import SummarizingContextManager
from context_summarize.config import Config
from context_summarize.providers.offline import OfflineProvider
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter

WAITING_TARGET = 0.05


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
    table = new_table(
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
