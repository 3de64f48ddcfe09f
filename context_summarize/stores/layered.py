"""A store in memory over a persistent one that may fail, hang or be away without costing anybody a request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.stores.guard import StoreGuard
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.protocol import SummaryStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

Entry: TypeAlias = Summary | CompactionRecord

MAX_UNWRITTEN = 512
"""Entries that wait to be written, at most. Beyond it the oldest is given up: it stays in memory only."""


class LayeredStore:
    """Memory first, then a persistent store: what either has is had, and what is put goes to both.

    No call raises for the persistent store's sake. When it fails, or takes longer than `timeout`, the log gets one
    warning and memory serves alone: nothing is asked for `retry_after` seconds, then one call tries again. The next
    warning comes only after it has been back. All waiting together is bounded too, by `timeout` seconds at a stretch
    and a tenth of the time beyond, so that many slow answers within one request do not add up to a stall.

    A put returns when its entry is written or the time for waiting is up. What is not written yet is kept, the newest
    512 entries, and written when the store is back; a caller that is cancelled takes no write with it. An entry that a
    working store refuses twice is given up: it stays in memory.

    Args:
        memory: holds what was read and put.
        persistent: any store. The texts of its errors stand in the log: they may hold no secret.
        name: what the log calls it; no secret either.
        timeout: seconds that one call, and all calls of one request together, may wait for it.
        retry_after: seconds without calls after a failure.
        clock: seconds, for `retry_after`; replaced in tests.
    """

    def __init__(
        self,
        memory: MemoryStore,
        persistent: SummaryStore,
        *,
        name: str = "the persistent store",
        timeout: float = 1.0,
        retry_after: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory = memory
        self._persistent = persistent
        self._timeout = timeout
        self._guard = StoreGuard(name, timeout, retry_after, clock)
        self._unwritten: OrderedDict[tuple[type[Entry], str], Entry] = OrderedDict()
        self._refused: Entry | None = None
        """The entry that a working store refused last."""
        self._writer: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Have the persistent store import what it needs, where it has anything to import."""
        prepare = getattr(self._persistent, "prepare", None)
        if prepare is not None:
            await prepare()

    # --- reads ------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`. What only the persistent store has is in memory from now on."""
        found = await self._memory.get(keys)
        missing = [key for key in keys if key not in found]
        if not missing:
            return found

        async def read() -> dict[str, Summary]:
            more = await self._persistent.get(missing)
            for summary in more.values():
                await self._memory.put(summary)
            return more

        return {**found, **await self._read(read, {})}

    async def find_records(self, digests: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order given; memory's wins over the other's.

        Of the persistent store only the hashes before the first one in memory are asked for: the longest history comes
        first, and shorter ones are no use then.
        """
        held = {record.hash: record for record in await self._memory.find_records(digests)}
        first = next((at for at, digest in enumerate(digests) if digest in held), len(digests))

        async def read() -> list[CompactionRecord]:
            found = await self._persistent.find_records(digests[:first])
            for record in found:
                await self._memory.put_record(record)
            return found

        if first:
            more: list[CompactionRecord] = await self._read(read, [])
            held |= {record.hash: record for record in more}
        return [held[digest] for digest in dict.fromkeys(digests) if digest in held]

    async def is_empty(self) -> bool:
        """True while neither has a record of a boundary.

        A persistent store that is away counts as empty. When it may be tried again it does not, without being asked:
        looking for a record is the better trial, since a store may say this much without its server.
        """
        if not await self._memory.is_empty():
            return False
        if not self._guard.working:
            return not self._guard.may_ask()
        return await self._guard.ask(self._persistent.is_empty, True)

    async def _read(self, call: Callable[[], Coroutine[Any, Any, T]], otherwise: T) -> T:
        if self._guard.working:
            return await self._guard.ask(call, otherwise)
        await self._write_out()  # what waits to be written makes the trial
        answer = await self._guard.ask(call, otherwise)
        if self._guard.working:
            self._start_writer()  # for what was put while this read was the trial
        return answer

    # --- writes -----------------------------------------------------------------------------------------------------

    async def put(self, summary: Summary) -> None:
        """Keep one summary.

        Raises:
            ValueError: the summary is a digest.
        """
        await self._memory.put(summary)
        await self._write(summary.key, summary)

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record."""
        await self._memory.put_record(record)
        await self._write(record.hash, record)

    async def _write(self, key: str, entry: Entry) -> None:
        self._unwritten[type(entry), key] = entry
        self._unwritten.move_to_end((type(entry), key))
        if len(self._unwritten) > MAX_UNWRITTEN:
            self._unwritten.popitem(last=False)
        await self._write_out()

    async def _write_out(self) -> None:
        """Have everything written that is not yet, and wait for it as long as waiting is allowed."""
        self._start_writer()
        if self._writer is not None and self._guard.may_ask():
            await self._guard.wait(self._writer)

    def _start_writer(self) -> None:
        if self._unwritten and self._guard.may_ask() and (self._writer is None or self._writer.done()):
            self._writer = self._guard.start(self._drain())

    async def _drain(self) -> None:
        while self._unwritten and self._guard.may_ask():
            name, entry = next(iter(self._unwritten.items()))
            worked = self._guard.working
            written = await self._guard.attempt(partial(self._persist, entry), False)
            if self._unwritten.get(name) is not entry:
                continue  # a newer one of the same key has taken its place
            if written or (worked and entry is self._refused):
                del self._unwritten[name]
            else:
                self._unwritten.move_to_end(name)  # the next trial is another entry's
                self._refused = entry if worked else self._refused
                return

    async def _persist(self, entry: Entry) -> bool:
        if isinstance(entry, Summary):
            await self._persistent.put(entry)
        else:
            await self._persistent.put_record(entry)
        return True

    async def close(self) -> None:
        """Write what is not written yet and let go of the persistent store, within `timeout` seconds in all.

        What cannot be written stays for the next use, and is lost with the process.
        """
        self._guard.try_now()  # the last chance for what is not written
        self._start_writer()
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=self._timeout / 2)
            self._writer.cancel()
        await self._guard.end(self._timeout / 4)
        try:
            await self._guard.bounded(self._persistent.close, self._timeout / 4)
        except Exception as error:  # noqa: BLE001 - it was to be let go of, and is
            logger.debug("a store does not close: %s", error)
