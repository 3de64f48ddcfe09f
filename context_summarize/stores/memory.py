"""`MemoryStore`: summaries and records in this process alone."""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from context_summarize.core.nodes import CompactionRecord, Summary


def _summary_bytes(summary: Summary) -> int:
    # Text plus the overhead of the objects. A rough figure is enough to bound the memory.
    return (
        600
        + 2 * len(summary.text)
        + sum(150 + 2 * len(fact.value) for fact in summary.ledger)
        + sum(60 + 2 * len(rule) for rule in summary.directives)
    )


def _record_bytes(record: CompactionRecord) -> int:
    marks = 200 * len(record.session.spans) if record.session else 0
    return 600 + 400 * (len(record.nodes) + len(record.ahead)) + 100 * len(record.shortened) + marks


class MemoryStore:
    """A store in memory, bounded in bytes: the least recently used entries go first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._summaries: LRUCache[str, Summary] = LRUCache(max_bytes, getsizeof=_summary_bytes)
        self._records: LRUCache[str, CompactionRecord] = LRUCache(max_bytes // 8, getsizeof=_record_bytes)

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        found = ((key, self._summaries.get(key)) for key in keys)
        return {key: summary for key, summary in found if summary is not None}

    async def put(self, summary: Summary) -> None:
        """Keep one summary.

        Raises:
            ValueError: it is a fallback summary.
        """
        if summary.fallback:
            raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")
        if _summary_bytes(summary) <= self._summaries.maxsize:
            self._summaries[summary.key] = summary

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order given."""
        return [record for hash_ in hashes if (record := self._records.get(hash_)) is not None]

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record."""
        if _record_bytes(record) <= self._records.maxsize:
            self._records[record.hash] = record

    async def is_empty(self) -> bool:
        """True while there is no record of a compaction."""
        return not self._records

    async def close(self) -> None:
        """Nothing is open."""
