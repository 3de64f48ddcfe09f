"""The history's own file: a header and one JSON line per row, for one session at a time."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal, ParamSpec, TypeVar

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import is_ephemeral
from context_summarize.messages.rows import JsonRow

P = ParamSpec("P")
T = TypeVar("T")
logger = logging.getLogger(__name__)

_HEADER = b'{"format":"context-summarize history","version":1}'


class HistoryFile:
    """The file of one session. Its methods block; `await file.do(file.append, rows)` has a thread call them.

    If `load` fails, only `close` may follow. After a later error, `sync` writes the whole file anew until that works.
    """

    def __init__(self, path: str, session_id: str | None, warn: Callable[[str], None]) -> None:
        self._path, self._warn = Path(path.replace("{session_id}", _file_name(session_id))), warn
        self._thread = ThreadPoolExecutor(1, "context-summarize-history")
        self._rows: list[JsonRow] = []
        self._lock: BinaryIO | None = None
        self._is_loaded = self.is_resumed = self._has_failed = self._closed = False

    async def do(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
        """Has the file's thread do this after all earlier work; returns None after an error, and tells the first."""

        def attempt() -> T | None:
            try:
                return work(*args, **options)
            except (OSError, RuntimeError, ValueError) as error:  # the latter two: no file can have this path
                text = f"history file {str(self._path)!r}: {error}; check persistence.path"
                if not self._has_failed:
                    logger.warning("%s; the session continues in memory", text)
                    self._warn(f"{text}; the session continues in memory")
                self._has_failed = True
                return None

        if self._closed:
            return None
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, attempt))

    def load(self) -> list[JsonRow]:
        """Locks and reads the file, or makes a missing one. It removes a torn last line and no other damage."""
        self._path = path = self._path.expanduser().resolve()  # a link stays a link when its file is replaced
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(Path(f"{path}.lock"))
        Path(f"{path}.tmp").unlink(missing_ok=True)  # a session was killed while it wrote this
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            self._write_whole()
        header, *lines = path.read_bytes().split(b"\n")
        if header.rstrip() != _HEADER or not lines:
            raise ValueError("it is not a history file of this version: move it away")
        torn = lines.pop()
        for number, line in enumerate(lines, 2):
            try:
                if line.strip():  # an editor may have saved the file
                    self._rows.append(normalise(json.loads(line.decode("utf-8", "surrogatepass"))))
            except (ValueError, RecursionError):
                raise ValueError(f"line {number} is damaged: repair it, or move the file away") from None
        if torn:
            os.truncate(path, path.stat().st_size - len(torn))
            logger.warning("history file %r: its torn last line was removed", str(path))
        self._is_loaded, self.is_resumed = True, bool(self._rows)
        return [*self._rows]

    def append(self, rows: Sequence[JsonRow]) -> None:
        """Passes the lines of these rows to the system, which keeps them if the process is killed."""
        self._rows += rows
        if not self._has_failed:
            with _open(self._path, "r+b") as file:
                file.seek(0, os.SEEK_END)
                file.writelines(_lines(rows))

    def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archives the file in the same folder, if it has rows, and continues with these rows."""
        had, self._rows = bool(self._rows), [*rows]
        self.is_resumed = self.is_resumed and bool(rows)
        if had:
            archive = f"{self._path.stem}.{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%fZ}{self._path.suffix}"
            with _open(self._path, "rb") as file, _open(self._path.with_name(archive), "xb") as copy:
                copy.write(file.read())
        self._write_whole()

    def sync(self) -> None:
        """Forces the written rows onto the disk itself, if the file was loaded."""
        if self._has_failed and self._is_loaded:  # a second sync may succeed although something was dropped
            self._write_whole()
        elif self._is_loaded:
            with _open(self._path, "r+b") as file:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Lets other sessions in. Later calls do nothing."""
        self._closed = True
        self._thread.shutdown(wait=False)
        if self._lock is not None:
            self._lock.close()

    def _write_whole(self) -> None:
        """Puts a new file with all rows in place of the old one; after a crash, one of the two is there, whole."""
        new = Path(f"{self._path}.tmp")
        new.unlink(missing_ok=True)
        with _open(new, "xb") as file:
            file.writelines(itertools.chain([_HEADER + b"\n"], _lines(self._rows)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        with suppress(OSError):  # some platforms cannot sync a folder, which holds the new name
            folder = os.open(self._path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self._has_failed = False


def _file_name(session_id: str | None) -> str:
    """Returns what stands for the id, with a hash last if signs were replaced: no two sessions share a file."""
    if session_id is None or not session_id.strip("."):
        return "session"
    name = re.sub(r"[^\w.-]", "_", session_id)
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
    return name if name == session_id else f"{name}-{digest[:8]}"


def _open(path: Path, mode: Literal["rb", "r+b", "ab", "xb"]) -> BinaryIO:
    """Opens a file that only its owner can read. Refuses a link, because it may lead out of a shared folder."""
    no_link = getattr(os, "O_NOFOLLOW", 0)
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | no_link, 0o600))


def _locked(path: Path) -> BinaryIO:
    """Locks out other sessions until this file is closed, if platform and disk have locks."""
    file = _open(path, "ab")
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ValueError("another session writes to it: give each session its own") from None
    except (ImportError, OSError):
        logger.debug("history file: its disk has no locks")
    return file


def _lines(rows: Iterable[JsonRow]) -> Iterable[bytes]:
    """Yields a line for each row, except ephemeral ones. As bytes, two lone surrogates stay two."""
    for row in rows:
        if not is_ephemeral(row):
            yield json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
