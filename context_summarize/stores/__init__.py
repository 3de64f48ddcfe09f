"""The stores of summaries: memory, a file, a server, or memory over one of these. Opens the store of a setting."""

from __future__ import annotations

import os
from pathlib import Path

from context_summarize.errors import ConfigError
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore, SummaryStore
from context_summarize.stores.shared import SharedStore, shown
from context_summarize.stores.sqlite import SqliteStore

__all__ = [
    "LayeredStore",
    "MemoryStore",
    "SharedStore",
    "SqliteStore",
    "SummaryStore",
    "open_file",
    "open_store",
    "session_store",
]

_ENDINGS = (".db", ".sqlite", ".sqlite3")


def open_store(cache: str | None) -> SummaryStore:
    """Returns the store that a `cache` setting names; its first use opens it.

    Args:
        cache: `memory`, a file, or an address such as `redis://…`; None = a file in the user's Amplifier folder.

    Raises:
        ConfigError: `cache` is none of these, or an address that cannot be used.
    """
    if cache == "memory":
        return MemoryStore()
    if cache is not None and "://" in cache:
        shared = SharedStore(cache)
        return LayeredStore(MemoryStore(), shared, name=shared.name)
    file = open_file(cache)
    return LayeredStore(MemoryStore(), file, name=str(file.path))


def session_store(cache: str | None, given: SummaryStore | None) -> SummaryStore:
    """Returns the store of a manager made without `mount()`: the given one, or the one that `cache` names, or memory.

    A store of the host's own gets memory in front of it, so that a store that hangs delays no request.
    """
    if given is None:
        return open_store(cache) if cache else MemoryStore()
    if type(given) in (MemoryStore, LayeredStore):  # a subclass may hang like a store of the host's own
        return given
    return LayeredStore(MemoryStore(), given, name=type(given).__name__)


def open_file(cache: str | None) -> SqliteStore:
    """Returns the store in the file that a `cache` setting names.

    Raises:
        ConfigError: `cache` names no file.
    """
    # Not in `cache/` of the user's folder, which `amplifier update --force` and `amplifier reset` clear.
    home = os.environ.get("AMPLIFIER_HOME") or "~/.amplifier"
    name = f"{home}/context-summarize/summaries.db" if cache is None else cache
    scheme, colon, rest = name.partition(":")
    if colon and len(scheme) > 1 and scheme.isalnum() and not rest.startswith("//"):  # no Windows drive
        raise ConfigError(
            f"cache: {shown(name)} is neither a file nor an address; an address begins as in redis://, and a file of "
            "this name is ./…"
        )
    if not ("/" in name or os.sep in name or name.endswith(_ENDINGS)):
        raise ConfigError(
            f"cache: {name!r} is not a file; write a path with a folder, as in ./name, or one that ends in "
            f"{', '.join(_ENDINGS)}; without a file, a session takes memory or an address (redis://…)"
        )
    return SqliteStore(Path(os.path.expanduser(name)))  # noqa: PTH111 - it does not raise if no home is known
