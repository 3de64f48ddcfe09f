"""The history's own file: a header and one JSON line per row, for one session at a time."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from context_summarize.background import in_thread
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import block_type, blocks_of, is_ephemeral, is_hook, rough_size
from context_summarize.messages.rows import PRIVATE_BLOCKS, SYSTEM_ROLES, JsonRow, saved_json
from context_summarize.messages.timing import timeless

logger = logging.getLogger(__name__)

_HEADER = b'{"format":"context-summarize history","version":1}\n'
_PRIVATE_KEYS = ("thinking_block", "thinking_text", "content_blocks")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free disk space")
_REMEDIES[errno.ELOOP] = "remove the link"
_LOAD_SECONDS = 30
"""Seconds that a session waits for its file; then it continues in memory."""
_WAIT_SECONDS = 1
"""Seconds that a call waits for the disk; slower work goes on without the call."""


class HistoryFile:
    """The file of one session. `take` appends the file's rows to the history. The first call opens the file.

    One thread does all work on the disk, in the order of the calls, and finishes it even if the caller is cancelled.
    No method raises: one warning, in the log and to `warn`, says what is wrong, and the session continues in memory.
    A file that cannot be loaded is not changed; after a later error, requests rewrite it until that works.
    """

    def __init__(self, path: str, take: Callable[[Sequence[JsonRow]], None], warn: Callable[[str], None]) -> None:
        self._disk = _Disk(path, warn)
        self._take = take
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "context-summarize-history")
        self._reading: asyncio.Future[Any] | None = None
        self._late: asyncio.Future[Any] | None = None
        self._early: list[JsonRow] = []
        self._from_file = self.loaded = False

    async def ready(self) -> None:
        """Waits until the file is loaded. The first call starts loading."""
        if self._reading is None:
            self._reading = self._do(self._disk.load)
            self._reading.add_done_callback(self._begin)
            asyncio.get_running_loop().call_later(_LOAD_SECONDS, self._reading.cancel)
        if not self.loaded:
            await asyncio.wait({self._reading})

    def _begin(self, reading: asyncio.Future[Any]) -> None:
        """Adds the rows of the file to the history, then the rows that came meanwhile."""
        if reading.cancelled():
            self._disk.warn("it could not be read in time; check its disk")
        rows = None if reading.cancelled() else reading.result()
        if rows is None:
            self._do(self._disk.close)
        self.loaded, self._from_file = True, bool(rows)
        self._take([*(rows or ()), *self._early])
        self._do(self._disk.append, self._early)

    async def append(self, rows: Sequence[JsonRow]) -> None:
        """Writes rows of the history; waits at most a second for these and earlier ones.

        Until the file is loaded, this method also adds the rows to the history, after those of the file.
        """
        if not self.loaded:
            self._early += rows
            await self.ready()
            rows = ()
        await self._wait(self._do(self._disk.append, rows))

    async def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archives the file and continues with these rows."""
        self._from_file = self._from_file and bool(rows)
        await self._wait(self._do(self._disk.replace, rows))

    async def sync(self) -> None:
        """Forces the written rows onto the disk itself."""
        await self._wait(self._do(self._disk.sync))

    async def accepted(self, ours: list[JsonRow], theirs: list[JsonRow]) -> list[JsonRow]:
        """Returns the rows of the new history: ours, if `theirs` is the copy that a resuming host has saved.

        Any other list is a repair. Hosts do not save leading system and developer rows: ours go before the list, for
        each role that does not lead it already.
        """
        if not self._from_file:
            return theirs
        if await in_thread(rough_size(theirs), _is_copy, ours, theirs):
            return ours
        brought = {row["role"] for row in _leading_system(theirs)}
        return [*(row for row in _leading_system(ours) if row["role"] not in brought), *theirs]

    async def close(self) -> None:
        """Syncs and closes the file, within seconds; the thread finishes slower work."""
        if self._reading is not None:
            asyncio.get_running_loop().call_later(_WAIT_SECONDS, self._reading.cancel)
            await self.ready()
            self._do(self._disk.sync)
        closing = self._do(self._disk.close)
        self._thread = None  # the thread ends with its last work
        await asyncio.wait({closing}, timeout=_WAIT_SECONDS)

    async def _wait(self, work: asyncio.Future[Any]) -> None:
        """Waits for the disk, but not while earlier work is late."""
        if self._late is None or self._late.done():
            await asyncio.wait({work}, timeout=_WAIT_SECONDS)
            self._late = work

    def _do(self, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Has the file's thread do this after all earlier work. After `close` the work does nothing."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._disk.attempt, work, *args)


class _Unfit(OSError):
    """The file cannot be used; the text says what to do."""


class _Disk:
    """The rows and their file, for blocking calls of one thread. The file is open only during a call."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.path = Path(path)
        self._rows: list[JsonRow] = []
        self._lock: BinaryIO | None = None
        self._failed = False
        """True after an error, until `sync` has written all rows again."""
        self._closed = False
        """True after `close`, and if the file could not be loaded: then no call does anything."""

    def attempt(self, work: Callable[..., Any], *args: Any) -> Any:
        """Calls one of the methods below. After an error it returns None; the first error is reported."""
        try:
            return None if self._closed else work(*args)
        except (OSError, RuntimeError, ValueError) as error:  # the latter two: no file can have this path
            if not self._failed:
                remedy = _REMEDIES.get(getattr(error, "errno", 0), "correct persistence.path")
                self.warn(str(error) if isinstance(error, _Unfit) else f"{error}; {remedy}")
            self._failed = True
            return None

    def warn(self, why: str) -> None:
        """Warns, in the log and to the user, that the session continues in memory."""
        text = f"history file {str(self.path)!r}: {why}; the session continues in memory"
        logger.warning("%s", text)
        self._warn(text)

    def load(self) -> list[JsonRow]:
        """Locks and reads the file, or makes a missing one. It removes a torn last line and no other damage."""
        self.path = self.path.expanduser().resolve()  # a link stays a link when its file is replaced
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _open(Path(f"{self.path}.lock"), "ab")
        _lock(self._lock)
        Path(f"{self.path}.tmp").unlink(missing_ok=True)  # a session was killed while it wrote this
        if not self.path.exists() or (self.path.is_file() and not self.path.stat().st_size):
            self._write_whole()
        with _open(self.path, "r+b") as file:
            if file.readline(len(_HEADER) + 1).replace(b"\r\n", b"\n") != _HEADER:
                raise _Unfit("it is not a history file of this version; move it away")
            for number, line in enumerate(file, 2):
                if not line.endswith(b"\n"):
                    file.truncate(file.tell() - len(line))
                    logger.warning("history file %r: its torn last line was removed", str(self.path))
                    break
                if line.isspace():  # an editor has saved the file
                    continue
                try:
                    self._rows.append(normalise(json.loads(line.decode("utf-8", "surrogatepass"))))
                except (ValueError, RecursionError):
                    raise _Unfit(f"line {number} is damaged; repair it, or move the file away") from None
        return [*self._rows]

    def append(self, rows: Sequence[JsonRow]) -> None:
        """Passes the lines of these rows to the system. After an error, some last lines may be missing."""
        self._rows += rows
        if not self._failed:
            with _open(self.path, "r+b") as file:
                file.seek(0, os.SEEK_END)
                file.writelines(_lines(rows))

    def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archives the file in the same folder, if it has rows, and replaces it by one with these rows."""
        had, self._rows = bool(self._rows), [*rows]
        if had:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
            archive = self.path.with_name(f"{self.path.stem}.{now}{self.path.suffix}")
            try:
                os.link(self.path, archive)
            except OSError:  # a disk without links
                with _open(archive, "xb") as copy, _open(self.path, "rb") as file:
                    shutil.copyfileobj(file, copy)
        self._write_whole()

    def sync(self) -> None:
        """Forces every row onto the disk itself."""
        if self._failed:  # a second sync may succeed although the system has dropped what it could not write
            self._write_whole()
        else:
            with _open(self.path, "r+b") as file:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Lets other sessions in."""
        self._closed = True
        if self._lock is not None:
            self._lock.close()

    def _write_whole(self) -> None:
        """Puts a new file with all rows in place of the old one; after a crash, one of the two is there, whole."""
        new = Path(f"{self.path}.tmp")
        new.unlink(missing_ok=True)
        with _open(new, "xb") as file:
            file.writelines(itertools.chain([_HEADER], _lines(self._rows)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        with contextlib.suppress(OSError):  # some platforms cannot sync a folder, which holds the new name
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self._failed = False


def _open(path: Path, mode: Literal["rb", "r+b", "ab", "xb"]) -> BinaryIO:
    """Opens a file that only its owner can read. Refuses a link, because it may lead out of a shared folder."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | _NO_LINK, 0o600))


def _lock(file: BinaryIO) -> None:
    """Locks out other sessions until the file is closed, if platform and disk have locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise _Unfit("another session writes to it; give each session its own persistence.path") from None
    except (ImportError, OSError):
        logger.debug("history file: its disk has no locks")


def _lines(rows: Iterable[JsonRow]) -> Iterable[bytes]:
    """Yields a line for each row, except ephemeral ones."""
    for row in rows:
        if not is_ephemeral(row):
            # JSON reads the escapes of a high surrogate and a low one as one character; as bytes they stay two.
            text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            yield text.encode("utf-8", "surrogatepass") + b"\n"


def session_path(path: str, coordinator: Any | None) -> str:
    """Returns the path with the host's session id, made fit for a file name, in place of `{session_id}`."""
    given = getattr(coordinator, "session_id", None)
    name = re.sub(r"[^\w.-]", "_", given) if isinstance(given, str) and given.strip(".") else "session"
    return path.replace("{session_id}", name)


def _is_copy(ours: Sequence[JsonRow], theirs: Sequence[JsonRow]) -> bool:
    """Returns True if `theirs` equals `ours` after a host's filtering.

    The filter follows amplifier-app-cli (`SessionStore._save_transcript`) and amplifier-foundation
    (`sanitize_message`). Rows that it drops, and hook rows, may be missing. The file has no ephemeral rows.
    """
    given = [row for row in theirs if not is_ephemeral(row)]
    at = 0
    for row in ours:
        if at < len(given) and _as_saved(row) == _as_saved(given[at]):
            at += 1
        elif not (is_ephemeral(row) or is_hook(row) or row["role"] in SYSTEM_ROLES):
            return False
    return at == len(given)


def _as_saved(row: JsonRow) -> str:
    """Returns a row as hosts save it: without thinking, `content_blocks`, `None` and its time, and through JSON."""
    kept = {key: value for key, value in timeless(row).items() if key not in _PRIVATE_KEYS}
    if blocks := blocks_of(row):
        kept["content"] = [block for block in blocks if block_type(block) not in PRIVATE_BLOCKS]
    return saved_json(json.loads(json.dumps(kept)))


def _leading_system(rows: Iterable[JsonRow]) -> Iterable[JsonRow]:
    return itertools.takewhile(lambda row: row["role"] in SYSTEM_ROLES and not is_hook(row), rows)
