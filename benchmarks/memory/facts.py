"""How many planted facts the last view of a long session holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from benchmarks.field.model import CODE, StandIn, Traits, facts_in, plant
from benchmarks.field.scenarios import recorded
from benchmarks.memory.sessions import OUTPUT, WINDOW, Run, new_table, run_session
from benchmarks.peers import text_of
from context_summarize import SummarizingContextManager
from context_summarize.providers.counted import CountedProvider
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter

FACTS_TARGET = 0.9


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
    table = new_table(
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
