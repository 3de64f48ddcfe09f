"""`LayeredStore`: memory over a persistent store, which may fail, hang or be away without failing a request."""

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
"""Most entries that wait to be written. Beyond it the oldest is not written: it stays in memory only."""


class LayeredStore:
    """Reads from memory first, then from the persistent store; writes to both.

    A failure of the persistent store never raises here. When it fails, or takes longer than `timeout`, the log gets one
    warning and memory serves alone: the store is not asked for `retry_after` seconds, then one call tries again. The
    next warning comes only after the store has worked again. The sum of all waiting is bounded too: `timeout` seconds
    at once, and a tenth of the time that passes after that. So many slow answers within one request do not add up.

    A put returns when its entry is written or the time for waiting is up. The newest 512 unwritten entries are kept and
    written when the store works again; one warning then names the number of the others. A caller that is cancelled does
    not cancel the write. An entry that a working store refuses twice is not tried again: it stays in memory.

    Args:
        memory: holds every entry that was read or put.
        persistent: any store. The log shows the texts of its errors: they must hold no secret.
        name: what the log calls it; it must hold no secret.
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
        self._guard = StoreGuard(name, timeout, retry_after, clock, self._start_writer)
        self._unwritten: OrderedDict[tuple[type[Entry], str], Entry] = OrderedDict()
        self._name = name
        self._dropped = 0
        """Entries that did not fit among the unwritten ones, since the log has named their number."""
        self._refused: Entry | None = None
        """The entry that a working store refused last."""
        self._writer: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Let the persistent store import its client, where it has one."""
        prepare = getattr(self._persistent, "prepare", None)
        if prepare is not None:
            await prepare()

    # --- reads ------------------------------------------------------------------------------------------------------

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`. Those read from the persistent store are kept in memory."""
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

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order given; a record in memory comes first.

        The persistent store is asked only for the hashes before the first one in memory: they stand for longer
        histories, and records of shorter ones are not needed then.
        """
        held = {record.hash: record for record in await self._memory.find_records(hashes)}
        first = next((at for at, hash_ in enumerate(hashes) if hash_ in held), len(hashes))

        async def read() -> list[CompactionRecord]:
            found = await self._persistent.find_records(hashes[:first])
            for record in found:
                await self._memory.put_record(record)
            return found

        if first:
            more: list[CompactionRecord] = await self._read(read, [])
            held |= {record.hash: record for record in more}
        return [held[hash_] for hash_ in dict.fromkeys(hashes) if hash_ in held]

    async def is_empty(self) -> bool:
        """True while neither store has a record of a compaction.

        A persistent store that is away counts as empty, until it may be tried again. Then the answer is False without
        asking it: looking for a record is the better trial, because some stores answer this question without a server.
        """
        if not await self._memory.is_empty():
            return False
        if not self._guard.working:
            return not self._guard.may_ask()
        return await self._guard.ask(self._persistent.is_empty, True)

    async def _read(self, call: Callable[[], Coroutine[Any, Any, T]], otherwise: T) -> T:
        if self._guard.working:
            return await self._guard.ask(call, otherwise)
        await self._write_out()  # a waiting entry is the trial
        return await self._guard.ask(call, otherwise)

    # --- writes -----------------------------------------------------------------------------------------------------

    async def put(self, summary: Summary) -> None:
        """Keep one summary.

        Raises:
            ValueError: it is a fallback summary.
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
            self._dropped += 1
        await self._write_out()

    async def _write_out(self) -> None:
        """Write the waiting entries, and wait for that as long as waiting is allowed."""
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
                continue  # a newer entry of the same key has replaced it
            if written or (worked and entry is self._refused):
                del self._unwritten[name]
            else:
                self._unwritten.move_to_end(name)  # the next trial uses another entry
                self._refused = entry if worked else self._refused
                return
        if not self._unwritten:
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self._dropped:
            logger.warning(
                "%s: %d summaries and records came faster than they could be written; they are in memory only, "
                "and the newest %d are kept for the store",
                self._name,
                self._dropped,
                MAX_UNWRITTEN,
            )
            self._dropped = 0

    async def _persist(self, entry: Entry) -> bool:
        if isinstance(entry, Summary):
            await self._persistent.put(entry)
        else:
            await self._persistent.put_record(entry)
        return True

    async def close(self) -> None:
        """Write the waiting entries and close the persistent store, within `timeout` seconds in all.

        Entries that cannot be written wait for the next use; the end of the process loses them.
        """
        self._guard.try_now()  # the last chance for waiting entries
        self._start_writer()
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=self._timeout / 2)
            self._writer.cancel()
        self._tell_dropped()
        await self._guard.end(self._timeout / 4)
        try:
            await self._guard.bounded(self._persistent.close, self._timeout / 4)
        except Exception as error:  # noqa: BLE001 - it is not used any more
            logger.debug("the store cannot be closed: %s", error)
