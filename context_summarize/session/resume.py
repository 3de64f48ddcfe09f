"""Records of committed boundaries: written whoever is cancelled, and found again for a history that begins alike."""

from __future__ import annotations

import asyncio
import hashlib

from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.keys import SCHEMA_VERSION
from context_summarize.core.nodes import CompactionRecord
from context_summarize.stores.protocol import SummaryStore
from context_summarize.summaries.prompts import PromptSet


class Records:
    """The records of one session's store."""

    def __init__(self, store: SummaryStore, prompts: PromptSet, config: Config) -> None:
        self._store = store
        self._writes: set[asyncio.Task[None]] = set()
        sizes = (config.segment_tokens, config.summary_tokens, config.fan_in, config.redact)
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, str(sizes))
        self.seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        """What a record's hash begins with: summaries made by other prompts or settings are not adopted."""

    async def write(self, record: CompactionRecord | None) -> None:
        """Put a record; None is nothing to put."""
        if record is None:
            return
        task = asyncio.create_task(self._store.put_record(record), name="context-summarize:record")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.shield(task)

    async def matching(self, history: History) -> list[CompactionRecord]:
        """The records that this history begins with, the longest first."""
        if len(history.rendered) < 2 or await self._store.is_empty():
            return []
        digests = list(history.running_hashes(self.seed, len(history.rendered)))
        return await self._store.find_records(digests[::-1])

    async def close(self) -> None:
        """Wait a little for what is being written."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=0.5)
