"""A store in memory that remembers what it was given."""

from __future__ import annotations

from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.stores.memory import MemoryStore


class KeptStore(MemoryStore):
    """Every summary and record that was put, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries: list[Summary] = []
        self.records: list[CompactionRecord] = []

    async def put(self, summary: Summary) -> None:
        self.summaries.append(summary)
        await super().put(summary)

    async def put_record(self, record: CompactionRecord) -> None:
        self.records.append(record)
        await super().put_record(record)
