"""A store that several machines share, at an address: Redis, PostgreSQL and what else py-key-value-aio speaks."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import re
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from .codec import DamagedEntry, decode_record, decode_summary, encode_record, encode_summary
from .errors import ConfigError, StoreUnavailable
from .types import BoundaryRecord, Summary

if TYPE_CHECKING:
    from key_value.aio.stores.base import BaseStore

logger = logging.getLogger(__name__)

SUMMARIES = "context_summarize_summaries"
RECORDS = "context_summarize_records"
"""The collections; servers without collections put the name before each key."""

TTL_SECONDS = 90 * 24 * 3600
"""Entries go so long after they were put."""

BATCH = 500
"""Keys in one request to the server."""

_TABLE = "context_summarize"
_DATABASE = "context_summarize"

_Close: TypeAlias = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Backend:
    """A kind of server: what to import, what to install for it, and how a client is made."""

    module: str
    install: str
    connect: Callable[[str], Awaitable[tuple[BaseStore, _Close]]]


def is_shared_address(text: str) -> bool:
    """True for an address (`scheme://…`), False for a path or a word."""
    return "://" in text


def public_address(address: str) -> str:
    """The address as it may stand in a log: without user, password and options."""
    scheme, _, rest = address.partition("://")
    place, mark, options = rest.partition("?")
    if mark and "@" in options:
        return f"{scheme}://…"  # the question mark may be part of a password
    return f"{scheme}://{place.rpartition('@')[2]}"


def _secrets(address: str) -> list[str]:
    """What of the address may not be said, as written and decoded, the longest first."""
    rest = address.partition("://")[2]
    user, colon, password = rest.rpartition("@")[0].partition(":")
    options = re.findall(r"[?&][^=&]*(?:pass|secret|token|key|auth)[^=&]*=([^&]+)", rest, re.IGNORECASE)
    secrets = {password if colon else user, *options} - {""}
    return sorted(secrets | {unquote(secret) for secret in secrets}, key=len, reverse=True)


def _check(address: str, name: str) -> None:
    """Refuse what a client would misread: its error would quote a part of the password as a port."""
    if re.search("[/?#]", address.partition("://")[2].rpartition("@")[0]):
        raise ConfigError(
            f"cache: the address {name!r} has a character in user, password or options that must be percent-encoded: "
            "write %2F for /, %3F for ?, %23 for #, %40 for @"
        )
    try:
        urlsplit(address)
    except ValueError as error:
        raise ConfigError(f"cache: the address {name!r} cannot be read: {error}") from None


class SharedStore:
    """A store on a server, for several processes and machines at once. Nothing is opened before the first call.

    Every method raises `StoreUnavailable` where the server cannot be read or written; the text holds no password. The
    next call tries anew. A call waits as long as the server takes: `LayeredStore` bounds that. An entry that cannot be
    read is as good as none. Entries go 90 days after they were put.

    Args:
        address: `redis://user:password@host:6379/0`, or another of `SCHEMES`.

    Raises:
        ConfigError: the address has a scheme that is not known, or cannot be read.
    """

    def __init__(self, address: str) -> None:
        scheme = address.partition("://")[0].lower()
        self.name = public_address(address)
        """The address without its secrets."""
        if scheme not in _BACKENDS:
            raise ConfigError(
                f"cache: no store is known for {self.name!r}; an address begins with one of "
                f"{', '.join(f'{known}://' for known in SCHEMES)}; a file is named by its path"
            )
        _check(address, self.name)
        self._address = address
        self._backend = _BACKENDS[scheme]
        self._lock = asyncio.Lock()
        self._open: tuple[BaseStore, _Close] | None = None
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def prepare(self) -> None:
        """Import the client ahead of the first call, in a thread: it can take as long as a call may. Never raises."""
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
                except DamagedEntry as error:
                    logger.debug("%s: summary %s is as good as none: %s", self.name, key[:12], error)
                    continue
                found[key] = summary
        return found

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced.

        Raises:
            ValueError: the summary is a digest.
        """
        if summary.digest:
            raise ValueError(f"a digest is never stored, got one for key {summary.key[:12]}")
        await self._write(SUMMARIES, summary.key, encode_summary(summary))

    async def find_boundary(self, digests: Sequence[str]) -> list[BoundaryRecord]:
        """The records with one of these running hashes, in the order given, from the first `BATCH` that hold any."""
        wanted = list(dict.fromkeys(digests))
        for at in range(0, len(wanted), BATCH):
            found: list[BoundaryRecord] = []
            for digest, text in await self._read(RECORDS, wanted[at : at + BATCH]):
                try:
                    found.append(decode_record(text))
                except DamagedEntry as error:
                    logger.debug("%s: record %s is as good as none: %s", self.name, digest[:12], error)
            if found:
                return found
        return []

    async def put_boundary(self, record: BoundaryRecord) -> None:
        """Keep one record; an earlier one of the same hash is replaced."""
        await self._write(RECORDS, record.digest, encode_record(record))

    async def is_empty(self) -> bool:
        """False: what others have put cannot be known without a search, and to look for a record costs no more."""
        return False

    async def close(self) -> None:
        """Let calls under way end, then let go of the connections. The store may be used again and opens anew."""
        async with self._lock, self._told():
            await self._idle.wait()
            if self._open is not None:
                close, self._open = self._open[1], None
                await close()

    # --- the server -------------------------------------------------------------------------------------------------

    async def _read(self, collection: str, keys: list[str]) -> list[tuple[str, str]]:
        async with self._told(), self._in_use() as store:
            entries = await store.get_many(keys, collection=collection)
        return [(key, str(entry.get("entry"))) for key, entry in zip(keys, entries, strict=True) if entry is not None]

    async def _write(self, collection: str, key: str, text: str) -> None:
        async with self._told(), self._in_use() as store:
            await store.put(key, {"entry": text}, collection=collection, ttl=TTL_SECONDS)

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator[BaseStore]:
        """The store, which is not closed meanwhile."""
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

    async def _connect(self) -> tuple[BaseStore, _Close]:
        try:
            await asyncio.to_thread(importlib.import_module, self._backend.module)
        except ImportError as error:
            raise StoreUnavailable(
                f"{self.name}: what speaks to such a store is not installed ({error}): "
                f"pip install '{self._backend.install}'"
            ) from None
        return await self._backend.connect(self._address)

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """Every error as one of ours, without secrets."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            raise StoreUnavailable(f"{self.name}: {type(error).__name__}: {self._clean(str(error))}") from None

    def _clean(self, text: str) -> str:
        """The text of a foreign error without the address and any part of it that may be secret."""
        text = text.replace(self._address, self.name)
        for secret in _secrets(self._address):
            text = text.replace(secret, "***")
        return text


# --- kinds of servers -----------------------------------------------------------------------------------------------


async def _redis(address: str) -> tuple[BaseStore, _Close]:
    from key_value.aio.stores.redis import RedisStore
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    # Our own client: the library's reads no options from an address, and no encoded password. One retry at once, for a
    # connection that the server has dropped meanwhile; to wait and try again is not this layer's business.
    scheme, _, rest = address.partition("://")
    url = f"{scheme.lower().replace('valkey', 'redis')}://{rest}"
    client = Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 1))
    return RedisStore(client=client), client.aclose


async def _postgresql(address: str) -> tuple[BaseStore, _Close]:
    import asyncpg  # type: ignore[import-untyped]
    from key_value.aio.stores.base import ManagedEntry
    from key_value.aio.stores.postgresql import PostgreSQLStore

    pool = await asyncpg.create_pool(address, min_size=0, max_size=4)

    class OneQuery(PostgreSQLStore):
        """Reads many keys at once; the library asks for one after the other."""

        async def _get_managed_entries(self, *, collection: str, keys: Sequence[str]) -> list[ManagedEntry | None]:
            rows = await pool.fetch(
                f"SELECT key, value, expires_at FROM {_TABLE} WHERE collection = $1 AND key = ANY($2::text[])",
                collection,
                list(keys),
            )
            found = {
                row["key"]: ManagedEntry(value=json.loads(row["value"]), expires_at=row["expires_at"]) for row in rows
            }
            return [found.get(key) for key in keys]

    with _quiet():
        store = OneQuery(pool=pool, table_name=_TABLE)
    return await _ready(store, pool.close)


async def _mongodb(address: str) -> tuple[BaseStore, _Close]:
    from key_value.aio.stores.mongodb import MongoDBStore

    with _quiet():
        store = MongoDBStore(url=address, db_name=urlsplit(address).path.strip("/") or _DATABASE)
    return await _ready(store, store.close)


async def _memcached(address: str) -> tuple[BaseStore, _Close]:
    from key_value.aio.stores.memcached import MemcachedStore

    place = urlsplit(address)
    with _quiet():
        store = MemcachedStore(host=place.hostname or "127.0.0.1", port=place.port or 11211)
    return store, store.close


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's warning that the layout of a store's entries may change: here they are a cache."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


async def _ready(store: BaseStore, close: _Close) -> tuple[BaseStore, _Close]:
    """Have the store make its tables now, under our lock; what a failure leaves open is closed."""
    try:
        for collection in (SUMMARIES, RECORDS):
            await store.setup_collection(collection=collection)
    except BaseException:
        await close()
        raise
    return store, close


_SHARED = "amplifier-module-context-summarize[shared]"
_REDIS = _Backend("key_value.aio.stores.redis", _SHARED, _redis)
_POSTGRESQL = _Backend("key_value.aio.stores.postgresql", _SHARED, _postgresql)
_MONGODB = _Backend("key_value.aio.stores.mongodb", "py-key-value-aio[mongodb]", _mongodb)

_BACKENDS = {
    "redis": _REDIS,
    "rediss": _REDIS,
    "valkey": _REDIS,  # speaks the same protocol
    "valkeys": _REDIS,
    "postgresql": _POSTGRESQL,
    "postgres": _POSTGRESQL,
    "mongodb": _MONGODB,
    "mongodb+srv": _MONGODB,
    "memcached": _Backend("key_value.aio.stores.memcached", "py-key-value-aio[memcached]", _memcached),
}

SCHEMES = tuple(_BACKENDS)
"""The known beginnings of an address."""
