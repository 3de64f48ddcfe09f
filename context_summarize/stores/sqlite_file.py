"""The SQLite file of summaries: its table, its modes, how it is opened, and what its errors mean to a user."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.earlier import EarlierFile
from context_summarize.stores.sqlite_connection import code_of, read_damaged_text, write_transaction

T = TypeVar("T")

APPLICATION_ID = 0x63747873
"""Marks the file as ours ("ctxs"), so that no other program's database is taken for one."""
SCHEMA_VERSION = 1
"""Version of the table below; the entries in it carry their own."""

_SCHEMA = (
    # `entry` comes last: whatever reads the other columns does not touch its pages.
    """CREATE TABLE entries (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        used REAL NOT NULL,
        size INTEGER NOT NULL,
        created REAL NOT NULL,
        tokens INTEGER NOT NULL,
        source_tokens INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    )""",
    "CREATE INDEX entries_used ON entries (used, size)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_IDENTITY = """SELECT (SELECT * FROM pragma_application_id), (SELECT * FROM pragma_user_version), count(*)
    FROM sqlite_master"""
_NEW = (0, 0, 0)  # application id, schema version, number of tables and indexes
_WAL_BYTES = 4 * 1024 * 1024  # the log is cut back to this after a large transaction
_OURS_ALONE = 0o600
_YOUNG_SECONDS = 60.0  # far longer than a process takes to make a file

_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process has held it for {seconds:g} s; end that one, or name another file in `cache`",
    # The file may be anything, for example a history of the user: never suggest deleting it.
    sqlite3.SQLITE_NOTADB: "the file is no store of summaries; name another one in `cache`",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; delete it: summaries are made again when they are needed",
    sqlite3.SQLITE_FULL: "free space on its disk",
}
_OTHER_REMEDY = "check that file and folder can be read and written, or name another file in `cache`"


class SqliteFile:
    """One file, used by one thread: `sqlite3` serves only the thread that opened the file.

    Args:
        path: the file; the first transaction creates it and its folder.
        busy_seconds: how long a statement waits for another process that holds the file.
        earlier: where earlier releases kept the file; the first use takes over what is there.
    """

    def __init__(self, path: Path, busy_seconds: float, earlier: Path | None = None) -> None:
        self.path = path
        self._earlier = None if earlier is None else EarlierFile(earlier, self._is_ours)
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        """Device and inode of the file that is open."""
        self._log: tuple[int, int] | None = None
        """The same of its write-ahead log."""

    def run(self, work: Callable[[], T]) -> T:
        """Do one piece of work; every error of the file or its disk becomes `StoreUnavailable`."""
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            # Reopened by the next call, so that a remedy (deleting a damaged file) works without a restart.
            self.close()
            remedy = _OTHER_REMEDY
            if isinstance(error, sqlite3.Error):
                remedy = _REMEDIES.get(code_of(error), remedy).format(seconds=self._busy_seconds)
            raise StoreUnavailable(f"summary store {self.path}: {error}; {remedy}") from error

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; none where there is no file: reading does not create it."""
        if not self.is_open and not self.path.exists() and not (self._earlier and self._earlier.is_there):
            self._leave_moved()
            return []
        return self._connected().execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it is done, or nothing."""
        with write_transaction(self._connected()) as connection:
            yield connection

    def shrink(self) -> None:
        """Give the space of deleted entries back to the disk."""
        connection = self._connected()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the file itself shrinks only now

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        size = 0
        for file in (self.path, _beside(self.path, "-wal")):
            with contextlib.suppress(FileNotFoundError):
                size += file.stat().st_size
        return size

    @property
    def is_open(self) -> bool:
        """True between the first use and `close`, while the file stays the one at the path."""
        return self._connection is not None and self._opened == _place(self.path)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _leave_moved(self) -> None:
        """Close a file that was deleted or replaced. Its log goes too: SQLite would read it into the new file."""
        if self._connection is None:
            return
        self.close()
        log = _beside(self.path, "-wal")
        if self._log is not None and _place(log) == self._log:
            for file in (log, _beside(self.path, "-shm")):
                file.unlink(missing_ok=True)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None or not self.is_open:
            self._leave_moved()
            _remove_leftovers(self.path)
            _make_folder(self.path.parent)
            if self._earlier is not None and self._earlier.is_there:
                self._earlier.move(self.path)
            _make_file(self.path)
            opened = _place(self.path)  # first: if it is replaced now, the next use notices
            connection = sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._opened = connection, opened or _place(self.path)
            self._take_over()
        return self._connection

    def _take_over(self) -> None:
        """Copy, once, what could not be moved as a whole."""
        earlier, self._earlier = self._earlier, None
        if earlier is not None and earlier.is_there and self._connection is not None:
            earlier.copy(self._connection)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        read_damaged_text(connection)
        self._check_schema(connection)
        self._enter_wal(connection)
        # With a write-ahead log, NORMAL syncs when the log is copied into the file, and not at each commit. A killed
        # process loses nothing, because the system holds its pages. A power cut may lose the last commits, which are
        # summaries that can be made again; it does not damage the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        self._identity(connection)  # the first read makes the log
        self._log = _place(_beside(self.path, "-wal"))
        _make_private(self.path)

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        if self._identity(connection) == _NEW:
            connection.execute("BEGIN IMMEDIATE")
            if self._identity(connection) == _NEW:  # no other process has made the tables meanwhile
                for statement in _SCHEMA:
                    connection.execute(statement)
            connection.execute("COMMIT")
        if not self._is_ours(connection):
            application, version, _ = self._identity(connection)
            seen = f"schema version {version}" if application == APPLICATION_ID else "a database of another program"
            raise StoreUnavailable(
                f"summary store {self.path}: expected schema version {SCHEMA_VERSION}, got {seen}; "
                "move the file away, or name another one in `cache`"
            )

    def _enter_wal(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait here by itself when two processes create the file at the same moment.
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        return self._identity(connection)[:2] == (APPLICATION_ID, SCHEMA_VERSION)

    @staticmethod
    def _identity(connection: sqlite3.Connection) -> tuple[int, ...]:
        identity: tuple[int, ...] = connection.execute(_IDENTITY).fetchone()
        return identity


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _make_folder(folder: Path) -> None:
    """A folder that only its owner may read, where there is none."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # the umask limits the mode that mkdir is given


def _make_file(path: Path) -> None:
    """An empty file that only its owner may read, where there is none."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists():
        return
    # SQLite would create it readable for all. Creating it here by name would be wrong too: closing a file releases
    # every lock of the process on it, also those of another store's connection. So a finished file is linked in.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        os.close(descriptor)
        Path(name).chmod(_OURS_ALONE)
        with contextlib.suppress(OSError):  # made by another process meanwhile, or a disk without links
            os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the empty files that killed processes have left; one that is young may be in use."""
    ours = re.compile(rf"\.{re.escape(path.name)}-[a-z0-9_]{{8}}")
    with contextlib.suppress(OSError):  # they take a name and do no other harm
        for file in path.parent.iterdir():
            if ours.fullmatch(file.name):
                about = file.lstat()
                if stat.S_ISREG(about.st_mode) and not about.st_size and time.time() - about.st_mtime > _YOUNG_SECONDS:
                    file.unlink()


def _place(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if there is none."""
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return about.st_dev, about.st_ino


def _make_private(path: Path) -> None:
    for file in (path, _beside(path, "-wal"), _beside(path, "-shm")):
        # A file of another user stays as its owner has it.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if stat.S_IMODE(file.stat().st_mode) != _OURS_ALONE:
                file.chmod(_OURS_ALONE)
