"""The history file: read, written, repaired and archived with blocking calls, by one thread."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.beside import (
    Refused,
    archive,
    locked,
    read_chunks,
    remove_leftovers,
    sync_folder,
    write,
    write_temporary,
)
from context_summarize.persistence.lines import check_header, line_of, new_header, read_rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a history file."""

    rows: list[JsonRow] = field(default_factory=list)
    dropped: int = 0
    """Lines that cannot be read, including a torn last line."""
    archive: Path | None = None
    """Archive of the file with its damaged lines; None if only its end is torn, or nothing."""


def open_at_end(path: Path) -> BinaryIO:
    """A file that is written at its end, without a buffer."""
    return path.open("ab", buffering=0)


class HistoryFile:
    """One history file. Its methods block, belong to one thread, and may raise `OSError`.

    After an error each method may be called again. A row that a method could not write is not in the file.

    Args:
        path: the file.
        opener: opens it; replaced in tests.
    """

    def __init__(self, path: str | Path, opener: Callable[[Path], BinaryIO] = open_at_end) -> None:
        self.path = Path(path)
        self._opener = opener
        self._data: BinaryIO | None = None
        self._lock: BinaryIO | None = None
        self._empty = True
        self._dirty = False
        self._size = 0
        """Bytes of the file's whole lines."""
        self._synced = 0
        """Bytes that the last sync has found; the lines after them are those of `_unsynced`."""
        self._unsynced: list[JsonRow] = []
        self._torn = False
        """True if a part of a line may stand after the whole ones."""
        self._doubtful = False
        """True after a sync that failed: the system may have dropped what it could not write."""
        self._archived = False
        """True if an archive holds the file as it is."""

    def load(self) -> Loaded:
        """Open, repair and read the file."""
        self.abandon()
        self.path = _resolved(self.path)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_header(self.path)
        self._lock, alone = locked(self.path)
        if alone:
            remove_leftovers(self.path)
        if not check_header(self.path):  # again, because nobody else writes under the lock
            torn = self.path.exists() and self.path.stat().st_size > 0
            kept = archive(self.path, ".damaged") if torn else None
            self._write_whole([new_header()])
            self._empty = True
            if torn:
                logger.warning("history file %s: its header was torn; it is kept as %s", self.path, kept)
            return Loaded(dropped=int(torn), archive=kept)
        rows, damaged, whole, torn = read_rows(self.path)
        self._empty = not rows
        kept = None
        if damaged:
            kept = archive(self.path, ".damaged")
            self._write_whole([new_header(), *map(line_of, rows)])
        else:
            self._open()
            self._mend(whole, torn)
        if damaged or torn:
            _warn_of_damage(self.path, len(rows), damaged, torn, kept)
        return Loaded(rows, damaged + torn, kept)

    def append(self, rows: Sequence[JsonRow]) -> None:
        """Write the lines of these rows: all of them, or none."""
        self._opened()
        self._renew()
        data = self._opened()
        if self._torn:
            data.truncate(self._size)
            self._torn = False
        lines = b"".join(map(line_of, rows))
        try:
            write(data, lines)
        except OSError:
            self._torn = True
            with contextlib.suppress(OSError):  # the next append cuts it off
                data.truncate(self._size)
                self._torn = False
            raise
        self._size += len(lines)
        self._unsynced += rows
        self._empty, self._dirty, self._archived = False, True, False

    def sync(self) -> None:
        """Force the written lines onto the disk."""
        if not self._dirty or self._data is None:
            return
        if self._doubtful:
            self._renew()
            return
        try:
            os.fsync(self._data.fileno())
        except OSError:
            self._doubtful = True
            raise
        self._check_place()
        self._all_synced()

    def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archive the file and write these rows."""
        self._opened()
        self._check_place()
        self._renew()
        if not self._empty and not self._archived:
            archive(self.path)
            self._archived = True
        self._write_whole([new_header(), *map(line_of, rows)])
        self._empty = not rows

    def close(self) -> None:
        """Sync, and release file and lock."""
        try:
            self.sync()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release file and lock, in whatever state they are."""
        for file in (self._data, self._lock):
            if file is not None:
                with contextlib.suppress(OSError):  # a late error of a network disk; `sync` has reported real ones
                    file.close()
        self._data = self._lock = None

    def _opened(self) -> BinaryIO:
        if self._data is None:
            self.load()
        assert self._data is not None, "load() opens the file or raises"
        return self._data

    def _open(self) -> None:
        self._data = self._opener(self.path)
        self._size = os.fstat(self._data.fileno()).st_size
        self._torn = self._archived = False
        self._all_synced()

    def _all_synced(self) -> None:
        self._synced, self._unsynced = self._size, []
        self._dirty = self._doubtful = False

    def _check_place(self) -> None:
        """Raises `Refused` if the open file is no longer the one at the path."""
        assert self._data is not None, "only an open file has a place"
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._data.fileno()), self.path.stat()):
                return
        raise Refused("another program has removed or replaced the file; stop that program and start a new session")

    def _mend(self, whole: int, torn: bool) -> None:
        """Make the file end with a whole line: keep `whole` bytes, or add the missing line end of a whole row."""
        data = self._opened()
        if torn:
            data.truncate(whole)
        elif self._size > whole:
            write(data, b"\n")
        self._size = self._synced = os.fstat(data.fileno()).st_size
        self._dirty = True  # an earlier session may have ended without a sync

    def _renew(self) -> None:
        """After a sync that failed, write the file anew.

        The next sync of the same file may succeed although the system has dropped pages that it could not write.
        """
        if self._doubtful:
            self._check_place()
            self._write_whole(chain(read_chunks(self.path, self._synced), map(line_of, self._unsynced)))

    def _write_whole(self, chunks: Iterable[bytes]) -> None:
        """Replace the old file by a new one; after a crash, one of the two exists."""
        new = write_temporary(self.path, chunks)
        try:
            if self._data is not None and os.name == "nt":
                self._data.close()  # this platform cannot replace an open file
            new.replace(self.path)
        except OSError:
            new.unlink(missing_ok=True)
            raise
        old, self._data = self._data, None
        self._open()
        if old is not None:
            old.close()
        sync_folder(self.path.parent)


def _warn_of_damage(path: Path, rows: int, damaged: int, torn: bool, kept: Path | None) -> None:
    what = [f"{damaged} damaged lines were left out, the file with them is kept as {kept}"] if damaged else []
    if torn:
        what.append("the torn last line was removed")
    logger.warning("history file %s: %s; %d rows are intact", path, " and ".join(what), rows)


def _resolved(path: Path) -> Path:
    """The real path of the file, so that a link stays a link when its file is replaced."""
    try:
        return path.expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # no home, a loop of links, a null character
        raise OSError(str(error)) from None
