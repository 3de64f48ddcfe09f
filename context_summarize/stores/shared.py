"""A store that several machines share, at an address: Redis, Valkey or PostgreSQL, through py-key-value-aio."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.errors import ConfigError, StoreUnavailable
from context_summarize.stores.address import check_address, public_address, secrets_in
from context_summarize.stores.codec import (
    DamagedEntry,
    check_key,
    decode_record,
    decode_summary,
    encode_record,
    encode_summary,
)
from context_summarize.stores.servers import BACKENDS, RECORDS, SCHEMES, SUMMARIES, Close

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from key_value.aio.stores.base import BaseStore

TTL_SECONDS = 90 * 24 * 3600
"""Seconds after which the server deletes an entry."""

BATCH = 500
"""Keys in one request to the server."""


class SharedStore:
    """A store on a server, for several processes and machines at once. Nothing is opened before the first call.

    Every method raises `StoreUnavailable` where the server cannot be read or written; the text holds no password. The
    next call tries again. A call waits as long as the server takes: `LayeredStore` bounds that. An entry that cannot be
    read is ignored. The server deletes entries 90 days after they were put.

    Args:
        address: `redis://user:password@host:6379/0`, or another of `SCHEMES`.

    Raises:
        ConfigError: the address has a scheme that is not known, or cannot be read.
    """

    def __init__(self, address: str) -> None:
        scheme = address.partition("://")[0].lower()
        self.name = public_address(address)
        """The address without its secrets."""
        if scheme not in BACKENDS:
            raise ConfigError(
                f"cache: {self.name!r} names no supported store; an address begins with one of "
                f"{', '.join(f'{known}://' for known in SCHEMES)}; a file is named by its path"
            )
        check_address(address, self.name)
        self._address = address
        self._backend = BACKENDS[scheme]
        self._lock = asyncio.Lock()
        self._open: tuple[BaseStore, Close] | None = None
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def prepare(self) -> None:
        """Import the client before the first call, in a thread: that can take as long as a call may. Never raises."""
        try:
            await asyncio.to_thread(importlib.import_module, self._backend.module)
        except ImportError:
            pass  # the first call says what is missing

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Summary] = {}
        for at in range(0, len(wanted), BATCH):
            for key, text in await self._read(SUMMARIES, wanted[at : at + BATCH]):
                try:
                    summary = decode_summary(text)
                    check_key(key, summary.key)
                except DamagedEntry as error:
                    logger.debug("%s: summary %s cannot be read and is ignored: %s", self.name, key[:12], error)
                    continue
                found[key] = summary
        return found

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced.

        Raises:
            ValueError: it is a fallback summary.
        """
        if summary.fallback:
            raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")
        await self._write(SUMMARIES, summary.key, encode_summary(summary))

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order given, from the first `BATCH` that hold any."""
        wanted = list(dict.fromkeys(hashes))
        for at in range(0, len(wanted), BATCH):
            found: list[CompactionRecord] = []
            for hash_, text in await self._read(RECORDS, wanted[at : at + BATCH]):
                try:
                    record = decode_record(text)
                    check_key(hash_, record.hash)
                except DamagedEntry as error:
                    logger.debug("%s: record %s cannot be read and is ignored: %s", self.name, hash_[:12], error)
                    continue
                found.append(record)
            if found:
                return found
        return []

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record; an earlier one of the same hash is replaced."""
        await self._write(RECORDS, record.hash, encode_record(record))

    async def is_empty(self) -> bool:
        """Always False: only a search can tell what others have put, and looking for a record costs no more."""
        return False

    async def close(self) -> None:
        """Let calls under way end, then close the connections. A later call opens them again."""
        async with self._lock, self._as_unavailable():
            await self._idle.wait()
            if self._open is not None:
                close, self._open = self._open[1], None
                await close()

    # --- the server -------------------------------------------------------------------------------------------------

    async def _read(self, collection: str, keys: list[str]) -> list[tuple[str, str]]:
        async with self._as_unavailable(), self._in_use() as store:
            entries = await store.get_many(keys, collection=collection)
        return [(key, str(entry.get("entry"))) for key, entry in zip(keys, entries, strict=True) if entry is not None]

    async def _write(self, collection: str, key: str, text: str) -> None:
        async with self._as_unavailable(), self._in_use() as store:
            await store.put(key, {"entry": text}, collection=collection, ttl=TTL_SECONDS)

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator[BaseStore]:
        """The store; `close` waits until it is no longer in use."""
        async with self._lock:
            if self._open is None:
                self._open = await self._connect()
            store = self._open[0]
            self._users += 1
            self._idle.clear()
        try:
            yield store
        finally:
            self._users -= 1
            if not self._users:
                self._idle.set()

    async def _connect(self) -> tuple[BaseStore, Close]:
        try:
            await asyncio.to_thread(importlib.import_module, self._backend.module)
        except ImportError as error:
            raise StoreUnavailable(
                f"{self.name}: the client for such a store is not installed ({error}): "
                'python -m pip install "py-key-value-aio[postgresql,redis]>=0.5,<0.6" "redis>=5.2" "asyncpg>=0.30"'
            ) from None
        return await self._backend.connect(self._address)

    @asynccontextmanager
    async def _as_unavailable(self) -> AsyncIterator[None]:
        """Turn every error of a client into `StoreUnavailable`, without secrets."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            raise StoreUnavailable(f"{self.name}: {type(error).__name__}: {self._clean(str(error))}") from None

    def _clean(self, text: str) -> str:
        """The text of a foreign error without the address and any part of it that may be secret."""
        text = text.replace(self._address, self.name)
        for secret in secrets_in(self._address):
            text = text.replace(secret, "***")
        return text
