"""Opens the store that the `cache` setting names: memory, a file, or a server that several machines share."""

from __future__ import annotations

import logging
from pathlib import Path

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.address import is_shared_address
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.protocol import SummaryStore
from context_summarize.stores.shared import SharedStore
from context_summarize.stores.sqlite import SqliteStore, default_path, earlier_path

logger = logging.getLogger(__name__)

MEMORY = "memory"
_BUSY_SECONDS = 0.5
"""How long a write waits for another process; less than a layered store waits for any call."""


def open_store(cache: str | None) -> SummaryStore:
    """The store that a `cache` setting names; its first use opens it.

    Args:
        cache: `memory`, a file, or an address such as `redis://…`; None = a file in the user's Amplifier folder.

    Raises:
        ConfigError: an address with an unsupported scheme, or one that cannot be read.
    """
    if cache == MEMORY:
        return MemoryStore()
    if cache is not None and is_shared_address(cache):
        shared = SharedStore(cache)
        return LayeredStore(MemoryStore(), shared, name=shared.name)
    try:
        store = open_file(cache, busy_seconds=_BUSY_SECONDS)
    except StoreUnavailable as error:
        logger.warning("summaries are kept in memory: %s", error)
        return MemoryStore()
    return LayeredStore(MemoryStore(), store, name=str(store.path))


def open_file(cache: str | None, *, busy_seconds: float = 2.0) -> SqliteStore:
    """The store in the file that a `cache` setting names; a file at the default's earlier place is taken over.

    Raises:
        StoreUnavailable: there is no home folder to put it into.
    """
    earlier = earlier_path() if cache is None else None
    return SqliteStore(cache_path(cache), busy_seconds=busy_seconds, earlier=earlier)


def cache_path(cache: str | None) -> Path:
    """The file that a `cache` setting names.

    Raises:
        StoreUnavailable: there is no home folder to put it into.
    """
    if cache is None:
        return default_path()
    try:
        return Path(cache).expanduser()
    except RuntimeError:
        raise StoreUnavailable(f"{cache} names a home folder that cannot be found; name the file in full") from None
