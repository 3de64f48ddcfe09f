"""What tests of the store in a file share: a clock, and the file as another program sees it."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context_summarize.stores.sqlite import SqliteStore
from tests.unit.stores.values import record, summary

HOUR = 3_600.0
DAY = 24 * HOUR


class Clock:
    """A clock that the test moves; it records the threads that read it."""

    def __init__(self) -> None:
        self.time = 1_000_000_000.0
        self.threads: set[str] = set()

    def __call__(self) -> float:
        self.threads.add(threading.current_thread().name)
        return self.time


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as another program sees it; every statement is committed at once."""
    path.parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        yield connection
    finally:
        connection.close()


@contextlib.contextmanager
def connected_with(pragma: str) -> Iterator[None]:
    """Every connection that is made meanwhile begins with this pragma."""
    connect = sqlite3.connect

    def connected(*args: Any, **settings: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*args, **settings)
        made.execute(pragma)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        yield


def files(path: Path) -> dict[str, int]:
    """Name → permission bits of all that stands beside a path."""
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}


def content(path: Path) -> bytes:
    return path.read_bytes()


def fill(path: Path, data: bytes | bytearray) -> None:
    """A file of this content and nothing beside it."""
    path.parent.mkdir(exist_ok=True)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(data)


CALLS: dict[str, Callable[[SqliteStore], object]] = {
    "get": lambda store: store.get(["a"]),
    "put": lambda store: store.put(summary("a")),
    "find_records": lambda store: store.find_records(["d"]),
    "put_record": lambda store: store.put_record(record("d")),
    "is_empty": lambda store: store.is_empty(),
    "statistics": lambda store: store.statistics(),
    "clear": lambda store: store.clear(),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
