"""Takes over a file of summaries from the place where earlier releases kept it, and loses nothing of it."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from context_summarize.stores.sqlite_connection import code_of, read_damaged_text, write_transaction

logger = logging.getLogger(__name__)

_COLUMNS = "kind, key, used, size, created, tokens, source_tokens, entry"
_BATCH = 200
_NO_LOG = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
"""What SQLite says where it cannot make the files that it keeps beside a write-ahead log."""


class EarlierFile:
    """A file at its earlier place, which other processes may be using.

    A file that nobody else uses is linked to the new place in one step, and then removed from the old one. Otherwise
    its entries are copied; the first session that finds nobody else using it removes it. Each step may be done twice,
    by two processes or after a crash.

    Args:
        place: where it is, if it is there.
        is_ours: tells from a connection whether the file may be taken over.
    """

    def __init__(self, place: Path, is_ours: Callable[[sqlite3.Connection], bool]) -> None:
        self._place = place
        self._is_ours = is_ours

    @property
    def is_there(self) -> bool:
        """True while there is something to take over. A link whose target is missing is nothing."""
        with contextlib.suppress(OSError):
            return self._place.is_file()
        return False

    def move(self, to: Path) -> None:
        """Move the file as a whole where that can be done; else nothing changes, and `copy` finds it.

        A symbolic link is made anew: its target stays where the user has put it.
        """
        with contextlib.suppress(OSError, sqlite3.Error):  # `copy` meets it again, and tells it
            if self._place.is_symlink():
                target = self._place.resolve(strict=True)
                _replace(self._place, to, lambda: to.symlink_to(target))
            elif to.exists() and to.samefile(self._place):
                self._place.unlink()  # the second step of a process that was killed between the two
            else:
                with self._opened() as (connection, is_writable):
                    if self._is_ours(connection) and is_writable and _alone(connection):
                        _replace(self._place, to, lambda: os.link(self._place, to))

    def copy(self, into: sqlite3.Connection) -> None:
        """Copy the entries that are missing at the new place, and remove the file if nobody else uses it."""
        try:
            with self._opened() as (connection, is_writable):
                if self._is_ours(connection):
                    alone = is_writable and _alone(connection)  # from here on nobody adds an entry
                    if copied := _copy(connection, into):
                        logger.info("summary store: %d entries are taken over from %s", copied, self._place)
                    if alone or self._place.is_symlink():
                        self._place.unlink(missing_ok=True)
        except (OSError, sqlite3.Error) as error:
            if self.is_there:  # else another process has taken it over meanwhile
                logger.warning("the summaries in %s cannot be moved: %s; the file stays there", self._place, error)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[sqlite3.Connection, bool]]:
        """A connection to the file, and False if it only reads because the folder may not be written."""
        connection, is_writable = _connect(self._place, "mode=rw"), True
        try:
            try:
                self._is_ours(connection)
            except sqlite3.OperationalError as error:
                if code_of(error) not in _NO_LOG or _has_log(self._place):
                    raise
                connection.close()
                connection, is_writable = _connect(self._place, "immutable=1"), False
            yield connection, is_writable
        finally:
            connection.close()


def _replace(place: Path, to: Path, make: Callable[[], None]) -> None:
    """Make the new name and remove the old one; both or none, as two names of one file would have two logs."""
    with contextlib.suppress(OSError):  # there is a file already, or the places are on two disks
        make()
        try:
            place.unlink(missing_ok=True)
        except OSError:
            to.unlink()


def _connect(place: Path, how: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(place.resolve()))}?{how}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0.2)
    read_damaged_text(connection)
    return connection


def _has_log(place: Path) -> bool:
    """True if entries stand in a write-ahead log beside the file, which only a writer can read."""
    file = place.resolve()
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _alone(connection: sqlite3.Connection) -> bool:
    """Bring the write-ahead log into the file and keep everybody else out; False while another process uses it."""
    try:
        [mode] = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute("BEGIN EXCLUSIVE" if mode == "delete" else "BEGIN")
    except sqlite3.OperationalError:
        return False  # somebody has it open, or it may only be read
    return bool(mode == "delete")


def _copy(source: sqlite3.Connection, into: sqlite3.Connection) -> int:
    known = set(into.execute("SELECT kind, key FROM entries"))
    missing = [place for place in source.execute("SELECT kind, key FROM entries") if place not in known]
    before = into.total_changes
    with write_transaction(into):
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            among = ", ".join(["(?, ?)"] * len(batch))
            values = [value for place in batch for value in place]
            rows = source.execute(f"SELECT {_COLUMNS} FROM entries WHERE (kind, key) IN (VALUES {among})", values)
            into.executemany(f"INSERT OR IGNORE INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return into.total_changes - before
