"""The file on the disk: locked, read, repaired, appended to and replaced, by blocking calls of one thread."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import is_ephemeral
from context_summarize.messages.rows import JsonRow

try:
    import fcntl
except ImportError:  # this platform has no such locks
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

_FORMAT = b'{"format":"context-summarize history",'
_HEADER = _FORMAT + b'"version":1}\n'


class DiskFile:
    """The file, and the rows that it is to hold. All methods but `close` may raise `OSError`."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.failed = False
        """Set after an error: from then on rows wait until `sync` has written all of them anew."""
        self._rows: list[JsonRow] = []
        self._file: BinaryIO | None = None
        self._lock: BinaryIO | None = None

    def load(self) -> list[JsonRow]:
        """Lock, read and repair the file; a missing one is made. What is not our file, or damaged, stays as it is."""
        self.path = self.path.expanduser().resolve()  # a link stays a link when its file is replaced
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.path.exists() and not self.path.is_file():
            raise OSError("it is a folder or a device, not a file")
        self._lock = _open_private(self._beside(".lock"))
        _lock(self._lock)
        self._beside(".tmp").unlink(missing_ok=True)  # a session was killed while it wrote this
        if not self.path.exists() or not self.path.stat().st_size:
            self._write_whole()
            return []
        self._rows, whole = _read(self.path)
        self._file = self.path.open("ab")
        if self._file.tell() > whole:
            self._file.truncate(whole)
            told = "history file %s: the torn last line was removed; %d rows are intact"
            logger.warning(told, self.path, len(self._rows))
        return [*self._rows]

    def append(self, rows: Sequence[JsonRow]) -> None:
        """Hand the lines of these rows to the system. What an error leaves of them there is their beginning."""
        self._rows += rows
        if self._file is not None and not self.failed:
            self._file.write(b"".join(_lines(rows)))
            self._file.flush()

    def replace(self, rows: Sequence[JsonRow]) -> None:
        """Keep the file beside itself, if it holds rows, and put one with these rows in its place."""
        had, self._rows = bool(self._rows), [*rows]
        if had:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
            archive = self.path.with_name(f"{self.path.stem}.{now}{self.path.suffix}")
            try:
                os.link(self.path, archive)
            except OSError:  # a disk without links
                shutil.copy(self.path, archive)
        self._write_whole()

    def sync(self) -> None:
        """Force every row onto the disk itself."""
        if self.failed:  # a second sync may succeed although the system has dropped what it could not write
            self._write_whole()
        elif self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Release file and lock, in whatever state they are."""
        for file in (self._file, self._lock):
            with contextlib.suppress(OSError):  # what could not be written; `sync` has reported it
                if file is not None:
                    file.close()
        self._file = self._lock = None

    def _beside(self, end: str) -> Path:
        return self.path.with_name(f"{self.path.name}{end}")

    def _write_whole(self) -> None:
        """Put a new file with all rows in place of the old one; after a crash, one of the two is there, whole."""
        new = self._beside(".tmp")
        try:
            with _open_private(new) as file:
                file.write(_HEADER)
                file.writelines(_lines(self._rows))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            new.unlink(missing_ok=True)
            raise
        if self._file is not None:
            with contextlib.suppress(OSError):  # what it could not write stands in the new file
                self._file.close()  # some platforms replace no open file
        new.replace(self.path)
        self._file = self.path.open("ab")
        with contextlib.suppress(OSError):  # some platforms cannot sync a folder, which holds the new name
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self.failed = False


def _open_private(path: Path) -> BinaryIO:
    """A file for writing that its owner alone may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _lock(file: BinaryIO) -> None:
    """Keep other sessions out until the file is closed, as far as platform and disk have locks."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError("another session writes to it; give each session its own persistence.path") from None
    except OSError:
        logger.debug("history file: its disk has no locks")


def _lines(rows: Iterable[JsonRow]) -> Iterable[bytes]:
    """The lines of rows; ephemeral ones have none."""
    for row in rows:
        if not is_ephemeral(row):
            # Escapes of a lone high surrogate and a lone low one would be read as one character; their bytes stay two.
            text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            yield text.encode("utf-8", "surrogatepass") + b"\n"


def _read(path: Path) -> tuple[list[JsonRow], int]:
    """The rows of a file, and the bytes of its whole lines."""
    rows: list[JsonRow] = []
    with path.open("rb") as file:
        header = file.readline()
        if not (is_header(header) and header.endswith(b"\n")):
            raise OSError("it is not one of our history files; move it away")
        if not header.startswith((_HEADER[:-1], _HEADER[:-2] + b",")):
            raise OSError("it has another version; update the package, or move the file away")
        whole = len(header)
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                break
            try:
                rows.append(normalise(json.loads(line.decode("utf-8", "surrogatepass"))))
            except (ValueError, RecursionError):
                raise OSError(f"line {number} is damaged; repair it, or move the file away") from None
            whole += len(line)
    return rows, whole


def is_header(line: bytes) -> bool:
    """True for the first line of a history file of any version."""
    return line.startswith(_FORMAT)
