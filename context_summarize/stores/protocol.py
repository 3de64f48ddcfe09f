"""`SummaryStore`: the methods that every store of summaries has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from context_summarize.core.nodes import CompactionRecord, Summary


class SummaryStore(Protocol):
    """Keeps summaries by key, and records of compactions by running hash. Fallback summaries are never put here."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced."""

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order in which the hashes are given."""

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record; an earlier one of the same hash is replaced."""

    async def is_empty(self) -> bool:
        """True while the store holds no record of a compaction."""

    async def close(self) -> None:
        """Close whatever is open. A later call opens it again."""
