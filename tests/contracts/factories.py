"""Every kind of store by name, and the values that their tests keep in them: what a session has put."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.stores import MemoryStore, SqliteStore, SummaryStore, open_store
from tests.support.gated import Shortening
from tests.support.kept import KeptStore
from tests.support.recorder import recording

FACTORIES: Mapping[str, Callable[[Path], SummaryStore]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "cache" / "store.sqlite3"),
    "what a file's path opens": lambda folder: open_store(str(folder / "cache" / "store.sqlite3")),
}
"""Name → what makes a new, empty store, in a new folder that it may use. The caller closes the store."""


@cache
def session() -> KeptStore:
    """The store of a session with merges, pins, shortened results and an undo."""

    async def played() -> KeptStore:
        store = KeptStore()
        manager = SummarizingContextManager(store=store, keep_recent=4, segment_tokens=512, summary_share=0.1)
        for at, row in enumerate(recording()[:60]):
            await manager.add_message(row)
            await manager.get_messages_for_request(3_000, Shortening())
            if at == 20:
                await manager.pin(5)
        await manager.close()
        return store

    with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop
        return thread.submit(asyncio.run, played()).result()


def summary(key: str, text: str = "Goal: none", *, fallback: bool = False) -> Any:
    return replace(session().summaries[0], key=key, text=text, fallback=fallback)


def record(number: int = 0) -> Any:
    """A record as sessions put it; `number` tells records apart."""
    records = [*session().records.values()]
    return records[number % len(records)]


def keys(count: int, seed: str = "") -> list[str]:
    return [hashlib.sha256(f"{seed}{index}".encode()).hexdigest() for index in range(count)]
