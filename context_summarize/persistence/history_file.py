"""The history file: read, written, repaired and archived with blocking calls, by one thread."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

from context_summarize.messages.checking import normalise
from context_summarize.messages.rows import JsonRow

try:
    import fcntl
except ImportError:  # this platform has no such locks
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

T = TypeVar("T")

FORMAT = "context-summarize history"
VERSION = 1
_LONGEST_HEADER = 4096
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HEADER_START = _encode({"format": FORMAT})[:-1].encode()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a history file."""

    rows: list[JsonRow] = field(default_factory=list)
    dropped: int = 0
    """Lines that cannot be read, including a torn last line."""
    archive: Path | None = None
    """Archive of the file with its damaged lines; None if only its end is torn, or nothing."""


class Refused(OSError):
    """We may not write to the file; the text says why and what to do."""


class HistoryFile:
    """One history file. Its methods block, belong to one thread, and may raise `OSError`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._data: BinaryIO | None = None
        self._lock: BinaryIO | None = None
        self._empty = True
        self._dirty = False

    def load(self) -> Loaded:
        """Open, repair and read the file."""
        self.abandon()
        self.path = _resolved(self.path)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_header(self.path)
        self._lock = _locked(self.path.with_name(f"{self.path.name}.lock"))
        if not _check_header(self.path):  # again, because nobody else writes under the lock
            torn = self.path.exists() and self.path.stat().st_size > 0
            archive = self._archive(".damaged") if torn else None
            self._write_whole([])
            if torn:
                logger.warning("history file %s: its header was torn; it is kept as %s", self.path, archive)
            return Loaded(dropped=int(torn), archive=archive)
        rows, damaged, whole, torn = _read(self.path)
        self._empty = not rows
        archive = None
        if damaged:
            archive = self._archive(".damaged")
            self._write_whole(rows)
        else:
            self._open()
            self._mend(whole, torn)
        if damaged or torn:
            _warn_of_damage(self.path, len(rows), damaged, torn, archive)
        return Loaded(rows, damaged + torn, archive)

    def append(self, rows: Sequence[JsonRow]) -> None:
        """Write the lines of these rows: all of them, or none."""
        data = self._opened()
        before = os.fstat(data.fileno()).st_size
        try:
            _write(data, b"".join(map(_line, rows)))
        except OSError:
            data.truncate(before)
            raise
        self._empty, self._dirty = False, True

    def sync(self) -> None:
        """Force the written lines onto the disk."""
        if not self._dirty or self._data is None:
            return
        os.fsync(self._data.fileno())
        if not os.path.samestat(os.fstat(self._data.fileno()), self.path.stat()):
            raise Refused("another program has replaced the file; stop that program and start a new session")
        self._dirty = False

    def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archive the file and write these rows."""
        self._opened()
        if not self._empty:
            self._archive()
        self._write_whole(rows)

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
        self._data = self.path.open("ab", buffering=0)

    def _mend(self, whole: int, torn: bool) -> None:
        """Make the file end with a whole line: keep `whole` bytes, or add the missing line end of a whole row."""
        data = self._opened()
        if torn:
            data.truncate(whole)
        elif os.fstat(data.fileno()).st_size > whole:
            _write(data, b"\n")
        self._dirty = True  # an earlier session may have ended without a sync

    def _write_whole(self, rows: Sequence[JsonRow]) -> None:
        """Replace the old file by a new one; after a crash, one of the two exists."""
        header = {"format": FORMAT, "version": VERSION, "created": datetime.now(UTC).isoformat(timespec="seconds")}
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                _write(file, b"".join(map(_line, [header, *rows])))
                os.fsync(handle)
            if self._data is not None:
                self._data.close()  # some platforms cannot replace an open file
            Path(name).replace(self.path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        self._open()
        self._empty, self._dirty = not rows, False
        _sync_folder(self.path.parent)

    def _archive(self, mark: str = "") -> Path:
        """Copy the file to an unused name beside it. It is copied, not moved, so that it exists at every moment."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        for number in itertools.count(1):
            again = f"-{number}" if number > 1 else ""
            target = self.path.with_name(f"{self.path.stem}.{stamp}{again}{mark}{self.path.suffix}")
            try:
                copy = _private(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                continue
            break
        try:
            with copy, self.path.open("rb") as source:
                shutil.copyfileobj(source, copy)
                copy.flush()
                os.fsync(copy.fileno())
        except OSError:
            target.unlink(missing_ok=True)
            raise
        return target


def _line(row: JsonRow) -> bytes:
    # As escapes, a lone high surrogate and a lone low one would be read as one character; as bytes they stay two.
    return _encode(row).encode("utf-8", "surrogatepass") + b"\n"


def _row(line: bytes) -> JsonRow | None:
    try:
        return normalise(json.loads(line.decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError):
        return None


def _read(path: Path) -> tuple[list[JsonRow], int, int, bool]:
    """(rows, number of damaged lines, bytes of the whole lines, whether the last line is torn)."""
    rows: list[JsonRow] = []
    damaged, whole, torn = 0, 0, False
    with path.open("rb") as file:
        whole += len(file.readline())
        for line in file:
            row = _row(line)
            ended = line.endswith(b"\n")
            if row is not None:
                rows.append(row)
            elif not ended:
                torn = True
            elif line.strip():
                damaged += 1
            whole += len(line) if ended else 0
    return rows, damaged, whole, torn


def _write(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _warn_of_damage(path: Path, rows: int, damaged: int, torn: bool, archive: Path | None) -> None:
    what = [f"{damaged} damaged lines were left out, the file with them is kept as {archive}"] if damaged else []
    if torn:
        what.append("the torn last line was removed")
    logger.warning("history file %s: %s; %d rows are intact", path, " and ".join(what), rows)


def _resolved(path: Path) -> Path:
    """The real path of the file, so that a link stays a link when its file is replaced."""
    try:
        return path.expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # no home, a loop of links, a null character
        raise OSError(str(error)) from None


def is_header(line: bytes) -> bool:
    """True for the first line of a history file of any version."""
    return line.startswith(_HEADER_START)


def _check_header(path: Path) -> bool:
    """True for one of our history files; False if the file does not exist yet or its header is torn.

    Raises:
        OSError: the file cannot be read.
        Refused: it is another program's file, or has a later version.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise Refused("it is a folder or a device, not a file; correct persistence.path")
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    if not first.endswith(b"\n") and (_HEADER_START.startswith(first) or first.startswith(_HEADER_START)):
        return False
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise Refused("it is not one of our history files and is left alone; move it away or correct persistence.path")
    if header.get("version") != VERSION:
        raise Refused(
            f"it has version {header.get('version')!r}, not {VERSION}, and is left alone; update the package or move it"
        )
    return True


def _private(path: Path, flags: int) -> BinaryIO:
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _locked(path: Path) -> BinaryIO:
    """The lock file, locked until it is closed.

    Raises:
        Refused: another session holds it.
    """
    file = _private(path, os.O_WRONLY | os.O_CREAT)
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise Refused("another session writes to it; give each session its own persistence.path") from None
        except OSError:
            pass  # a file system without locks
    return file


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every platform can sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
