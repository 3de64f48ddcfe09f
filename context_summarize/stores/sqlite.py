"""`SqliteStore`: summaries and records in a file of the user. Several processes may use it at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.memory import TextStore

T = TypeVar("T")

_OURS = (int.from_bytes(b"ctxs"), 2)  # SQLite's application id and user version, by which we know our own files
_NEW = (0, 0, 0)
_IDENTITY = """SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
    FROM pragma_application_id, pragma_user_version"""
_SCHEMA = f"""BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS entries (
        kind TEXT, key TEXT, written REAL, used REAL, entry BLOB, PRIMARY KEY (kind, key)
    );
    CREATE INDEX IF NOT EXISTS entries_used ON entries (used);
    PRAGMA application_id = {_OURS[0]};
    PRAGMA user_version = {_OURS[1]};
    COMMIT;"""
_BYTES_IN_USE = """SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
_CHOSEN = "kind = ? AND key IN (SELECT value FROM json_each(?))"
_EVICT = """DELETE FROM entries WHERE rowid IN (
    SELECT rowid FROM entries ORDER BY used LIMIT 1 + (SELECT count(*) FROM entries) / 16)"""

_REMEDIES = {
    sqlite3.SQLITE_CORRUPT: "the cache is damaged; delete the file: summaries are made again when they are needed",
    sqlite3.SQLITE_CANTOPEN: "no permission to read or write it, or its folder; allow it, or name another in `cache`",
    sqlite3.SQLITE_NOTADB: "name another file in `cache`",
}
_DAY = 86_400.0
_CREATING = threading.Lock()  # closing a new file releases all locks of this process on it


class SqliteStore(TextStore):
    """A store in a file, which the first put creates. Entries that were not used for 90 days are deleted.

    A thread of the store does all work, one call after the other, so that the event loop never waits for the disk.
    Every method raises `StoreUnavailable` if the file cannot be read or written; the next call tries again. A file
    that is damaged, or comes from another program or version, is not changed.

    Args:
        path: the file; a missing folder is created.
        max_bytes: limit of the file's pages in use; the least recently used entries are deleted first.
        busy_seconds: how long a call waits for another process that locks the file.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 256 * 1024 * 1024,
        busy_seconds: float = 0.5,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._max_bytes, self._busy_seconds, self._now = max_bytes, busy_seconds, now
        self._thread = ThreadPoolExecutor(1, "context-summarize-store")
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    async def close(self) -> None:
        """Finishes the calls under way and closes the file. A later call opens it again."""
        await self._run(self._close)

    async def _read(self, name: str, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._run(lambda: self._load(name, keys))

    async def _write(self, name: str, key: str, text: str) -> None:
        await self._run(lambda: self._save(name, key, text))

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.wrap_future(self._thread.submit(work))
        except (sqlite3.Error, OSError) as error:
            # An error without a code is one of the disk, or of a text that is no UTF-8.
            without_code = 0 if isinstance(error, OSError) else sqlite3.SQLITE_CORRUPT
            code = getattr(error, "sqlite_errorcode", without_code) & 0xFF  # the higher bits are details
            remedy = _REMEDIES.get(code, "check that file, folder and disk can be written, or name another in `cache`")
            raise StoreUnavailable(f"summary store {self.path}: {error}; {remedy}") from error

    def _load(self, name: str, keys: Sequence[str]) -> dict[str, bytes]:
        if not self.path.exists():  # reading does not create it
            return {}
        now, given = self._now(), (name, json.dumps(keys))
        query = f"SELECT key, entry, used < ? FROM entries WHERE {_CHOSEN}"
        rows = self._connected().execute(query, (now - _DAY, *given)).fetchall()
        if any(is_stale for _, _, is_stale in rows):
            # A read-only file works too.
            with contextlib.suppress(sqlite3.OperationalError), self._connected() as connection:
                connection.execute(f"UPDATE entries SET used = ? WHERE {_CHOSEN}", (now, *given))
        return {key: entry for key, entry, _ in rows}

    def _save(self, name: str, key: str, text: str) -> None:
        now = self._now()
        with self._connected() as connection:  # one transaction
            row = (name, key, now, now, text.encode())
            connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", row)
            connection.execute("DELETE FROM entries WHERE used < ?", (now - 90 * _DAY,))
            while connection.execute(_BYTES_IN_USE).fetchone()[0] > self._max_bytes:
                if not connection.execute(_EVICT).rowcount:
                    break

    def _connected(self) -> sqlite3.Connection:
        if self._connection and not (self.path.exists() and self.path.stat().st_ino == self._inode):
            self._close()  # deleted or replaced
        if not self._connection:
            self._connection = self._connect()
            self._inode = self.path.stat().st_ino
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        path = self.path.resolve()
        if str(self.path).startswith("~"):
            raise StoreUnavailable(f"summary store {self.path}: no home folder is known; set HOME or AMPLIFIER_HOME")
        with _CREATING:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # SQLite would make it readable for all
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            connection = sqlite3.connect(path, timeout=self._busy_seconds, isolation_level="IMMEDIATE")
        try:
            identity = connection.execute(_IDENTITY).fetchone()
            if identity == _NEW:
                connection.executescript(_SCHEMA)
            elif identity[:2] != _OURS:
                version = f"it is of version {identity[1]}, and this program reads version {_OURS[1]}"
                what = version if identity[0] == _OURS[0] else "it is another program's database"
                raise StoreUnavailable(f"summary store {self.path}: {what}; name another file in `cache`")
            # This pragma fails while another process opens the file; that process then sets the same mode.
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing, because the system holds its pages. A power cut may lose the last
            # summaries, which can be made again; it does not damage the file.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()
