"""The files beside a history file: its lock, its archives, and the temporary files that become one or the other."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # this platform has no such locks
    fcntl = None  # type: ignore[assignment]

_CHUNK = 1 << 20


class Refused(OSError):
    """We may not write to the file; the text says why and what to do."""


def locked(path: Path) -> tuple[BinaryIO, bool]:
    """The lock file of a history, locked until it is closed; False if this platform or disk has no locks.

    Raises:
        Refused: another session holds it.
    """
    file = os.fdopen(os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600), "wb")
    if fcntl is None:
        return file, False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise Refused("another session writes to it; give each session its own persistence.path") from None
    except OSError:
        return file, False  # a file system without locks
    return file, True


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that killed sessions have left. Only the session that holds the lock may do this."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    with contextlib.suppress(OSError):  # they take space and do no other harm
        for file in path.parent.iterdir():
            if ours.fullmatch(file.name) and stat.S_ISREG(file.lstat().st_mode):
                file.unlink()


def write_temporary(path: Path, chunks: Iterable[bytes]) -> Path:
    """A synced temporary file beside `path` with this content; if it cannot be written, nothing is left of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            for chunk in chunks:
                write(file, chunk)
            os.fsync(handle)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def read_chunks(path: Path, size: int | None = None) -> Iterable[bytes]:
    """The content of a file, or its first `size` bytes.

    Raises:
        OSError: the file cannot be read, or is shorter than `size`.
    """
    left = size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK if left is None else min(left, _CHUNK)):
            left = None if left is None else left - len(chunk)
            yield chunk
    if left:
        raise OSError(errno.EIO, f"the file has become shorter by {left} bytes")


def archive(path: Path, mark: str = "") -> Path:
    """Copy a history file to an unused name beside it. It is copied, not moved, so that it exists at every moment."""
    copy = write_temporary(path, read_chunks(path))
    try:
        return _named(copy, path, mark)
    finally:
        copy.unlink(missing_ok=True)


def _named(copy: Path, path: Path, mark: str) -> Path:
    """Give a finished copy the first archive name that is free; a kill leaves no half of an archive."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    for number in itertools.count(1):
        again = f"-{number}" if number > 1 else ""
        target = path.with_name(f"{path.stem}.{stamp}{again}{mark}{path.suffix}")
        try:
            os.link(copy, target)
        except FileExistsError:
            continue
        except OSError:  # a disk without links
            if target.exists():
                continue
            copy.replace(target)
        return target
    raise AssertionError("names do not run out")


def sync_folder(folder: Path) -> None:
    """Force new names in a folder onto the disk."""
    with contextlib.suppress(OSError):  # not every platform can sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write(file: BinaryIO, data: bytes) -> None:
    """Write all of it, in as many steps as the system takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
