"""`SharedStore`: summaries on a server that several machines share: Redis, Valkey or PostgreSQL."""

from __future__ import annotations

import asyncio
import importlib
import warnings
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from context_summarize.errors import ConfigError, StoreUnavailable
from context_summarize.stores.memory import TextStore

if TYPE_CHECKING:
    from key_value.aio.stores.base import BaseStore

_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "postgresql", "postgres")
_TTL_SECONDS = 90 * 24 * 3600


class SharedStore(TextStore):
    """A store at an address, through py-key-value-aio. The first call connects; entries expire after 90 days.

    Raises:
        ConfigError: the address cannot be used, or the client for it is not installed.
    """

    def __init__(self, address: str) -> None:
        self.name = shown(address)
        scheme, _, rest = address.partition("://")
        login, _, _ = rest.rpartition("@")
        if scheme.lower() not in _SCHEMES or any(sign in login for sign in "/?#"):
            raise ConfigError(
                f"cache: {scheme}://… is not the address of a store; begin it with one of {'://, '.join(_SCHEMES)}://, "
                "and write /, ? and # in user and password as %2F, %3F and %23"
            )
        self._address = f"{scheme.lower().replace('valkey', 'redis')}://{rest}"  # the same protocol
        kind = "redis" if self._address.startswith("redis") else "postgresql"
        try:
            importlib.import_module(f"key_value.aio.stores.{kind}")
        except ImportError as error:
            remedy = f"in a clone, install it by `pip install '.[shared]'` ({error})"
            raise ConfigError(f'cache: {self.name} needs the client of the extra "shared"; {remedy}') from None
        self._lock = asyncio.Lock()
        self._client: tuple[BaseStore, Callable[[], Awaitable[None]]] | None = None

    async def close(self) -> None:
        """Lets calls under way end, then closes the connections. A later call opens them again."""
        async with self._lock:
            if self._client is not None:
                (_, close), self._client = self._client, None
                await close()

    async def _read(self, name: str, keys: Sequence[str]) -> dict[str, str]:
        entries = await self._call(lambda store: store.get_many(keys, collection=f"context_summarize_{name}"))
        return {key: str(entry.get("entry")) for key, entry in zip(keys, entries, strict=True) if entry is not None}

    async def _write(self, name: str, key: str, text: str) -> None:
        collection, value = f"context_summarize_{name}", {"entry": text}
        await self._call(lambda store: store.put(key, value, collection=collection, ttl=_TTL_SECONDS))

    async def _call(self, work: Callable[[BaseStore], Awaitable[Any]]) -> Any:
        async with self._lock:  # one at a time, so that `close` waits for those before it
            try:
                self._client = self._client or await _connect(self._address)
                return await work(self._client[0])
            except Exception as error:  # noqa: BLE001 - each client has errors of its own
                # Their texts may contain a password, so the error names only the kind, of the cause if it has one.
                raise StoreUnavailable(f"{self.name}: {type(error.__cause__ or error).__name__}") from None


def shown(address: str) -> str:
    """Returns an address without user, password and options."""
    scheme, sign, rest = address.partition("://")
    return f"{scheme}{sign}{rest.rpartition('@')[2].partition('?')[0]}"


async def _connect(address: str) -> tuple[BaseStore, Callable[[], Awaitable[None]]]:
    """Returns a store of the library and the function that closes it. The library ignores parts of an address, so the
    client is ours.
    """
    if address.startswith("redis"):
        from key_value.aio.stores.redis import RedisStore
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        redis = Redis.from_url(address, decode_responses=True, retry=Retry(NoBackoff(), 1))  # `LayeredStore` waits
        return RedisStore(client=redis), redis.aclose
    import asyncpg  # type: ignore[import-untyped]
    from key_value.aio.stores.postgresql import PostgreSQLStore

    pool = await asyncpg.create_pool(address, min_size=0, max_size=1)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # its layout may change: this is a cache
        return PostgreSQLStore(pool=pool, table_name="context_summarize"), pool.close
