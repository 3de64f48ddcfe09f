"""`MemoryStore`: summaries and records in this process alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from cachetools import LRUCache

from context_summarize.core.nodes import CompactionRecord, Summary


class MemoryStore:
    """A store in memory, bounded in bytes: the least recently used entries go first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._summaries: LRUCache[str, Summary] = LRUCache(max_bytes, getsizeof=_bytes)
        self._records: LRUCache[str, CompactionRecord] = LRUCache(max_bytes // 8, getsizeof=_bytes)

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        return {key: summary for key in keys if (summary := self._summaries.get(key)) is not None}

    async def put(self, summary: Summary) -> None:
        """Keep one summary. Raises `ValueError` if it is a fallback summary."""
        if summary.fallback:
            raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")
        with suppress(ValueError):  # larger than the store
            self._summaries[summary.key] = summary

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order given."""
        return [record for hash_ in hashes if (record := self._records.get(hash_)) is not None]

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record."""
        with suppress(ValueError):
            self._records[record.hash] = record

    async def is_empty(self) -> bool:
        """True while there is no record of a compaction."""
        return not self._records

    async def close(self) -> None:
        """Nothing is open."""


def _bytes(entry: Summary | CompactionRecord) -> int:
    return 2 * len(repr(entry))  # a rough figure is enough to bound the memory
