"""What a store of summaries has to offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from context_summarize.core.nodes import CompactionRecord, Summary


class SummaryStore(Protocol):
    """Key → summary, and running hash → record of a boundary. A digest is never put here."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        ...

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced."""
        ...

    async def find_records(self, digests: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order in which the hashes are given."""
        ...

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record; the newest one of a hash wins."""
        ...

    async def is_empty(self) -> bool:
        """True while there is no record of a boundary to look for."""
        ...

    async def close(self) -> None:
        """Let go of whatever is open. The store may be used again and opens anew."""
        ...
