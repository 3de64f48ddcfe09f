"""Where summaries and records of boundaries are kept, by key: the protocol, memory, and single flight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from cachetools import LRUCache

from .errors import SummaryUnavailable
from .types import BoundaryRecord, Summary

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SummaryStore(Protocol):
    """Key → summary, and running hash → record of a boundary. A digest is never put here."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        ...

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced."""
        ...

    async def find_boundary(self, digests: Sequence[str]) -> list[BoundaryRecord]:
        """The records with one of these running hashes, in the order in which the hashes are given."""
        ...

    async def put_boundary(self, record: BoundaryRecord) -> None:
        """Keep one record; the newest one of a hash wins."""
        ...

    async def is_empty(self) -> bool:
        """True while there is no record of a boundary to look for."""
        ...

    async def close(self) -> None:
        """Let go of whatever is open. The store may be used again and opens anew."""
        ...


def _summary_bytes(summary: Summary) -> int:
    # Object overhead beside the text; the exact figure does not matter, that it is counted does.
    return (
        600
        + 2 * len(summary.text)
        + sum(150 + 2 * len(fact.value) for fact in summary.ledger)
        + sum(60 + 2 * len(rule) for rule in summary.rules)
    )


def _record_bytes(record: BoundaryRecord) -> int:
    return 600 + 400 * len(record.nodes) + 100 * len(record.elided)


class MemoryStore:
    """A store in memory, bounded in bytes, the least recently used going first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._summaries: LRUCache[str, Summary] = LRUCache(max_bytes, getsizeof=_summary_bytes)
        self._records: LRUCache[str, BoundaryRecord] = LRUCache(max_bytes // 8, getsizeof=_record_bytes)

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        found = ((key, self._summaries.get(key)) for key in keys)
        return {key: summary for key, summary in found if summary is not None}

    async def put(self, summary: Summary) -> None:
        """Keep one summary.

        Raises:
            ValueError: the summary is a digest.
        """
        if summary.digest:
            raise ValueError(f"a digest is never stored, got one for key {summary.key[:12]}")
        if _summary_bytes(summary) <= self._summaries.maxsize:
            self._summaries[summary.key] = summary

    async def find_boundary(self, digests: Sequence[str]) -> list[BoundaryRecord]:
        """The records with one of these running hashes, in the order given."""
        return [record for digest in digests if (record := self._records.get(digest)) is not None]

    async def put_boundary(self, record: BoundaryRecord) -> None:
        """Keep one record."""
        if _record_bytes(record) <= self._records.maxsize:
            self._records[record.digest] = record

    async def is_empty(self) -> bool:
        """True while there is no record of a boundary."""
        return not self._records

    async def close(self) -> None:
        """Nothing is open."""


class SingleFlight:
    """At most one piece of work per key under way; whoever asks meanwhile shares it.

    The work goes on when the one who asked is cancelled: its result still reaches the store.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """The result of `make()`, started now unless it is under way already."""
        if self._closed:
            raise SummaryUnavailable("the session has ended", kind="cancelled", attempts=0)
        task = self._tasks.get(key)
        if task is None:

            async def work() -> object:
                return await make()

            task = asyncio.create_task(work(), name=f"context-summarize:{key[:12]}")
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        try:
            return cast(T, await asyncio.shield(task))
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if task.cancelled() and not (asker is not None and asker.cancelling()):
                # The work was cancelled, not the one who asks: by `close()`, or by a provider from within.
                raise SummaryUnavailable("the call was cancelled", kind="cancelled", attempts=1) from None
            raise

    def _forget(self, key: str, task: asyncio.Task[object]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()  # an error that nobody waits for any more is not asyncio's business

    async def close(self) -> None:
        """Cancel what is under way and start nothing more."""
        self._closed = True
        await end_tasks(list(self._tasks.values()))


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, at most half a second: foreign code may swallow a cancellation."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=0.5)
        if left:
            logger.warning("%d calls of a provider go on after the session's end: they ignore cancellation", len(left))
