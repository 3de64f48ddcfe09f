"""`SummaryStore`: the methods that every store of summaries has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
