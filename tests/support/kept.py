"""A store in memory that remembers what it was given."""

from __future__ import annotations

from typing import Any

from context_summarize.testing import MemoryStore


class KeptStore(MemoryStore):
    """Every summary and record that was put, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries: list[Any] = []
        self.records: dict[str, Any] = {}

    async def put(self, summary: Any) -> None:
        self.summaries.append(summary)
        await super().put(summary)

    async def put_record(self, hash_: str, record: Any) -> None:
        self.records[hash_] = record
        await super().put_record(hash_, record)
