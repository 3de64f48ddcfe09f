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

    If the persistent store fails or does not answer within `timeout` seconds, the log gets one warning, and memory
    serves. After a failed read or a timeout the store is left alone for 30 s. An entry that could not be written is
    missing in later sessions, which make it again. The log shows `name` or the text of a `StoreUnavailable`; neither
    has secrets.
    """

    def __init__(
        self, memory: MemoryStore, store: SummaryStore, name: str, timeout: float = 1, clock: Clock = time.monotonic
    ) -> None:
        self._memory, self._persistent = memory, store
        self._name, self._timeout, self._clock = name, timeout, clock
        self._retry_at = 0.0
        self._has_warned = False
        """True from the warning until an entry is written, for reads may go on working while the disk is full."""
        self._order = asyncio.Lock()
        """Held by the write under way: a newer entry comes after an older one of its key."""
        self._writes: set[asyncio.Task[None]] = set()

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """Returns the stored summaries among `keys`. Those read from the persistent store are kept in memory."""
        return await self._find(keys, self._memory.get, self._stored)

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        return await self._find(hashes, self._memory.get_records, self._persistent.get_records)

    async def put(self, summary: Summary) -> None:
        await self._memory.put(summary)
        await self._write(lambda: self._persistent.put(summary))

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        await self._memory.put_record(hash_, record)
        await self._write(lambda: self._persistent.put_record(hash_, record))

    async def close(self) -> None:
        """Waits for the writes under way, then closes the persistent store; each within `timeout`."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=self._timeout)
        for write in self._writes:
            write.cancel()
        with contextlib.suppress(Exception):  # it is not used any more
            async with asyncio.timeout(self._timeout):
                await self._persistent.close()

    async def _find(self, keys: Sequence[str], near: Reader[T], far: Reader[T]) -> dict[str, T]:
        """Returns the entries among `keys`: those that memory has, and of the persistent store only the others."""
        found = await near(keys)
        missing = [key for key in keys if key not in found]
        try:
            found |= await self._ask(lambda: far(missing)) if missing else {}
        except StoreUnavailable as error:
            self._warn(error)
        return found

    async def _stored(self, keys: Sequence[str]) -> dict[str, Summary]:
        stored = await self._persistent.get(keys)
        for summary in stored.values():
            await self._memory.put(summary)
        return stored

    async def _ask(self, call: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        """Returns the store's answer; raises StoreUnavailable if the store is in a pause, fails or takes too long."""
        if self._clock() < self._retry_at:
            raise StoreUnavailable(self._name)
        try:
            async with asyncio.timeout(self._timeout):
                return await call()
        except Exception as error:  # noqa: BLE001 - memory serves instead, whatever the store raises; it is logged
            if isinstance(error, TimeoutError) or not writes:  # a full disk can still be read, and refuses quickly
                self._retry_at = self._clock() + _RETRY_SECONDS
            # The text of a foreign error may hold a secret.
            seen = error if isinstance(error, StoreUnavailable) else f"{self._name}: {type(error).__name__}"
            raise StoreUnavailable(str(seen)) from None

    def _warn(self, error: StoreUnavailable) -> None:
        if not self._has_warned:
            self._has_warned = True
            text = "%s; meanwhile summaries are kept in memory, and the store is tried again later"
            logger.warning(text, error)

    async def _write(self, call: Callable[[], Awaitable[None]]) -> None:
        """Writes in a task: a caller that is cancelled does not cancel it."""
        write = asyncio.create_task(self._written(call))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        await asyncio.wait({write}, timeout=self._timeout)

    async def _written(self, call: Callable[[], Awaitable[None]]) -> None:
        async with self._order:
            try:
                await self._ask(call, writes=True)
            except StoreUnavailable as error:
                self._warn(error)
                return
        if self._has_warned:
            self._has_warned = False
            logger.info("%s works again", self._name)
