"""Every kind of store by name, and the values that their tests keep in them."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from context_summarize.core.nodes import CompactionRecord, Node, Summary
from context_summarize.facts.fact import Fact
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.protocol import SummaryStore
from context_summarize.stores.sqlite import SqliteStore


async def memory(folder: Path) -> SummaryStore:
    return MemoryStore()


async def sqlite(folder: Path) -> SummaryStore:
    # Far longer than any write takes: a slow machine must not pass for a file that another process holds.
    return SqliteStore(folder / "cache" / "store.sqlite3", busy_seconds=30)


async def layered(folder: Path) -> SummaryStore:
    return LayeredStore(MemoryStore(), await sqlite(folder), timeout=30)  # no write is given up on a slow machine


FACTORIES: Mapping[str, Callable[[Path], Awaitable[SummaryStore]]] = {
    "memory": memory,
    "sqlite": sqlite,
    "layered": layered,
}
"""Name → what makes a new, empty store, in a new folder that it may use. The caller closes the store."""


def summary(key: str, text: str = "Goal: none", *, fallback: bool = False) -> Summary:
    return Summary(
        key=key,
        level=1,
        text=text,
        ledger=(Fact("id", "HAT136", 2), Fact("path", "src/\ud800.py")),
        tokens=5,
        source_tokens=50,
        fallback=fallback,
        provider="p",
        model="m",
        usage={"input_tokens": 7, "output_tokens": 2, "attempts": 1},
        cost_usd="0.01",
        created=1.5,
        coverage=0.5,
        directives=("answer in Dutch",),
    )


def record(hash_: str, frontier: int = 3) -> CompactionRecord:
    leaf = Node("k1", 0, 0, 0, 2, 100, 512)
    rest = Node("k2", 0, -1, 2, 3, 100, 512, (), "focus")
    node = Node("k3", 1, -1, 0, 3, 150, 0, (leaf, rest))
    return CompactionRecord(hash_, frontier, 9, 512, 100, (node,), ((1, 0, 64, "ab"),), 4, 2.5)


def keys(count: int, seed: str = "") -> list[str]:
    """Keys as the package makes them."""
    return [hashlib.sha256(f"{seed}{index}".encode()).hexdigest() for index in range(count)]
