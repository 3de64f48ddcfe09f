"""`LayeredStore`: memory over a persistent store. If that fails, hangs or is unreachable, no request fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from context_summarize.core.nodes import Summary
from context_summarize.errors import StoreUnavailable
from context_summarize.messages.rows import JsonRow
from context_summarize.stores.memory import MemoryStore, SummaryStore

logger = logging.getLogger(__name__)
T = TypeVar("T")
Clock = Callable[[], float]
Reader = Callable[[Sequence[str]], Awaitable[dict[str, T]]]

_RETRY_SECONDS = 30.0


class LayeredStore:
    """A `SummaryStore` that reads from memory first, then from the persistent store, and writes to both.

    When the persistent store fails, or does not answer within `timeout` seconds, the log gets one warning. For
    30 s nothing is written, and after a failed read nothing is read: memory serves. Once the store works again, the
    missing entries are written. The log shows `name` or the text of a `StoreUnavailable`; neither has secrets.
    """

    def __init__(
        self, memory: MemoryStore, store: SummaryStore, name: str, timeout: float = 1, clock: Clock = time.monotonic
    ) -> None:
        self._memory, self._persistent = memory, store
        self._name, self._timeout, self._clock = name, timeout, clock
        self._retry_at = {"read": 0.0, "write": 0.0}
        self._has_warned = False
        """True from the warning until an entry is written again, for reads may go on working while the disk is full."""
        self._unwritten: dict[tuple[str, str], Callable[[], Awaitable[None]]] = {}
        """Entries to write, in the order of the next attempts. They need no limit: the history is far larger."""
        self._writer: asyncio.Task[None] | None = None

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """Returns the stored summaries among `keys`. Those read from the persistent store are kept in memory."""
        return await self._find(keys, self._memory.get, self._stored)

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        return await self._find(hashes, self._memory.get_records, self._persistent.get_records)

    async def put(self, summary: Summary) -> None:
        await self._memory.put(summary)
        await self._write(("summary", summary.key), lambda: self._persistent.put(summary))

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        await self._memory.put_record(hash_, record)
        await self._write(("record", hash_), lambda: self._persistent.put_record(hash_, record))

    async def close(self) -> None:
        """Tries once more to write the missing entries, then closes the persistent store; each within `timeout`."""
        self._retry_at["write"] = 0.0
        await asyncio.wait({writer := self._start_writer()}, timeout=self._timeout)
        writer.cancel()
        with contextlib.suppress(Exception):  # it is not used any more
            async with asyncio.timeout(self._timeout):
                await self._persistent.close()

    async def _find(self, keys: Sequence[str], near: Reader[T], far: Reader[T]) -> dict[str, T]:
        """Returns the entries among `keys`: those that memory has, and of the persistent store only the others."""
        found = await near(keys)
        missing = [key for key in keys if key not in found]
        with contextlib.suppress(StoreUnavailable):
            found |= await self._ask("read", lambda: far(missing)) if missing else {}
        return found

    async def _stored(self, keys: Sequence[str]) -> dict[str, Summary]:
        stored = await self._persistent.get(keys)
        for summary in stored.values():
            await self._memory.put(summary)
        return stored

    async def _ask(self, kind: str, call: Callable[[], Awaitable[T]]) -> T:
        """Returns the store's answer; raises StoreUnavailable if the store is in a pause, fails or takes too long."""
        if self._clock() < self._retry_at[kind]:
            raise StoreUnavailable(self._name)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await call()
        except Exception as error:  # noqa: BLE001 - memory serves instead, whatever the store raises; it is logged
            if not self._has_warned:
                # The text of a foreign error may hold a secret.
                seen = error if isinstance(error, StoreUnavailable) else f"{self._name}: {type(error).__name__}"
                logger.warning(
                    "%s; meanwhile summaries are kept in memory, and the store is tried again after 30 seconds", seen
                )
            self._has_warned = True
            # After a failed write reads go on: a full disk can still be read.
            self._retry_at |= dict.fromkeys((kind, "write"), self._clock() + _RETRY_SECONDS)
            raise StoreUnavailable(self._name) from None
        if self._unwritten:
            self._start_writer()
        return answer

    async def _write(self, name: tuple[str, str], call: Callable[[], Awaitable[None]]) -> None:
        self._unwritten[name] = call
        await asyncio.wait({self._start_writer()}, timeout=self._timeout)

    def _start_writer(self) -> asyncio.Task[None]:
        """Returns the one task that writes, in order. A caller that is cancelled does not cancel it."""
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_out())
        return self._writer

    async def _write_out(self) -> None:
        while self._unwritten:
            name, call = next(iter(self._unwritten.items()))
            del self._unwritten[name]
            try:
                await self._ask("write", call)
            except StoreUnavailable:
                self._unwritten.setdefault(name, call)  # after the others, so that it does not block them
                return
            if self._has_warned:
                self._has_warned = False
                logger.info("%s works again", self._name)
