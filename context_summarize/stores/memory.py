"""What every store of summaries does, and the simplest one: summaries and records in this process alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from cachetools import LRUCache

from context_summarize.core.nodes import Summary
from context_summarize.messages.rows import JsonRow


class SummaryStore(Protocol):
    """Keeps summaries by key, and records of compactions by hash. Fallback summaries are never put here."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced."""

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        """The stored records among those of these hashes."""

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        """Keep one record, JSON data; an earlier one of the same hash is replaced."""

    async def close(self) -> None:
        """Close whatever is open. A later call opens it again."""


class MemoryStore:
    """A store in memory, bounded in bytes: the least recently used entries go first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._summaries: LRUCache[str, Summary] = LRUCache(max_bytes, getsizeof=_bytes)
        self._records: LRUCache[str, JsonRow] = LRUCache(max_bytes // 8, getsizeof=_bytes)

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        return {key: summary for key in keys if (summary := self._summaries.get(key)) is not None}

    async def put(self, summary: Summary) -> None:
        """Keep one summary. Raises `ValueError` if it is a fallback summary."""
        if summary.fallback:
            raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")
        with suppress(ValueError):  # larger than the store
            self._summaries[summary.key] = summary

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        """The stored records among those of these hashes."""
        return {hash_: record for hash_ in hashes if (record := self._records.get(hash_)) is not None}

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        """Keep one record."""
        with suppress(ValueError):
            self._records[hash_] = record

    async def close(self) -> None:
        """Nothing is open."""


def _bytes(entry: Summary | JsonRow) -> int:
    return 2 * len(repr(entry))  # a rough figure is enough to bound the memory
