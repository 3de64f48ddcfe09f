"""The kinds of servers that a store can be on, through py-key-value-aio: Redis (or Valkey) and PostgreSQL."""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from key_value.aio.stores.base import BaseStore

SUMMARIES = "context_summarize_summaries"
RECORDS = "context_summarize_records"
"""The collections; Redis puts the name before each key."""

_TABLE = "context_summarize"
_SETUP_LOCK = 0x63747873
"""Number of the advisory lock under which the table is made; any number that no other program uses."""

Close: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of server: what to import for it, and how a client is made."""

    module: str
    connect: Callable[[str], Awaitable[tuple[BaseStore, Close]]]


async def _redis(address: str) -> tuple[BaseStore, Close]:
    from key_value.aio._utils.managed_entry import ManagedEntry
    from key_value.aio._utils.serialization import BasicSerializationAdapter
    from key_value.aio.errors import DeserializationError
    from key_value.aio.stores.redis import RedisStore
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    # A client of ours: the library's own reads neither options nor an encoded password from an address. It retries
    # once, without waiting, because the server may have dropped the connection; `LayeredStore` does any other retry.
    scheme, _, rest = address.partition("://")
    url = f"{scheme.lower().replace('valkey', 'redis')}://{rest}"
    # Bytes that are no text are damage of one entry, which its reader finds, and no error of the whole answer.
    client = Redis.from_url(url, decode_responses=True, encoding_errors="replace", retry=Retry(NoBackoff(), 1))

    class AnyError(BasicSerializationAdapter):
        """Reads an entry as the library does; whatever is wrong with it is the one error that the library expects."""

        def load_json(self, json_str: str) -> ManagedEntry:
            try:
                entry = super().load_json(json_str)
                return ManagedEntry(value=entry.value)  # without its times: the server deletes what has expired
            except (ValueError, TypeError, RecursionError) as error:
                raise DeserializationError(str(error)) from None

    class OneByOne(RedisStore):
        """An entry that cannot be read is as good as none, and the others are read."""

        def __init__(self) -> None:
            super().__init__(client=client)
            self._adapter = AnyError()

    return OneByOne(), client.aclose


async def _postgresql(address: str) -> tuple[BaseStore, Close]:
    import asyncpg  # type: ignore[import-untyped]
    from key_value.aio.stores.base import ManagedEntry
    from key_value.aio.stores.postgresql import PostgreSQLStore

    pool = await asyncpg.create_pool(address, min_size=0, max_size=4)

    class OneQuery(PostgreSQLStore):
        """Reads many keys in one query; the library asks for one after the other."""

        async def _get_managed_entries(self, *, collection: str, keys: Sequence[str]) -> list[ManagedEntry | None]:
            rows = await pool.fetch(
                f"SELECT key, value, expires_at FROM {_TABLE} WHERE collection = $1 AND key = ANY($2::text[])",
                collection,
                list(keys),
            )
            found: dict[str, ManagedEntry] = {}
            for row in rows:
                with suppress(ValueError, RecursionError):  # an entry that cannot be read is as good as none
                    value = json.loads(row["value"])
                    if isinstance(value, dict):
                        found[row["key"]] = ManagedEntry(value=value, expires_at=row["expires_at"])
            return [found.get(key) for key in keys]

    with _quiet():
        store = OneQuery(pool=pool, table_name=_TABLE)
    try:
        # One process at a time: `CREATE TABLE IF NOT EXISTS` fails when two run it at the same moment.
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _SETUP_LOCK)
            for collection in (SUMMARIES, RECORDS):
                await store.setup_collection(collection=collection)
    except BaseException:
        await pool.close()
        raise
    return store, pool.close


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library's warning that the layout of entries may change: these entries are a cache."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


_REDIS = Backend("key_value.aio.stores.redis", _redis)
_POSTGRESQL = Backend("key_value.aio.stores.postgresql", _postgresql)

BACKENDS = {
    "redis": _REDIS,
    "rediss": _REDIS,
    "valkey": _REDIS,  # speaks the same protocol
    "valkeys": _REDIS,
    "postgresql": _POSTGRESQL,
    "postgres": _POSTGRESQL,
}
"""Scheme of an address → the kind of server."""

SCHEMES = tuple(BACKENDS)
"""The schemes that an address may have."""
