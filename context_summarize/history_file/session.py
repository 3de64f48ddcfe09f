"""`HistoryFile`: loaded before anything else, written with each row, synced at each request; and the host's copy."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from context_summarize.history_file.disk import DiskFile
from context_summarize.messages.json_text import saved_json
from context_summarize.messages.reading import block_type, blocks_of, is_ephemeral, is_hook
from context_summarize.messages.rows import PRIVATE_BLOCKS, SYSTEM_ROLES, JsonRow

logger = logging.getLogger(__name__)

_PRIVATE_KEYS = ("thinking_block", "thinking_text", "content_blocks")
_LOAD_SECONDS = 30
"""How long a session waits for its file; then it continues in memory."""
_WAIT_SECONDS = 1
"""How long a call waits for the disk; slower work continues without it."""
_MANY = 1_000
"""Rows above which a thread compares a host's copy."""


class HistoryFile:
    """The file of one session; `take` appends the rows that it holds to the history. The first call opens it.

    One thread does all work on the disk, in the order of the calls; what has begun is done once, whether or not the
    caller is cancelled. No method raises: if something is wrong with the file, one warning says so, and the session
    continues in memory. A file that could not be loaded is left as it is. After a later error each request tries to
    write all rows.
    """

    def __init__(self, path: str, take: Callable[[Sequence[JsonRow]], None]) -> None:
        self._disk = DiskFile(path)
        self._take = take
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="context-summarize-history")
        self._reading: asyncio.Future[Any] | None = None
        self._late: asyncio.Future[Any] | None = None
        self._early: list[JsonRow] = []
        self._from_file = self._ended = False
        self.loaded = False

    async def ready(self) -> None:
        """Wait until the file is loaded. The first call starts loading."""
        if self._reading is None:
            self._reading = self._do(self._disk.load)
            patience = asyncio.get_running_loop().call_later(_LOAD_SECONDS, self._reading.cancel)
            self._reading.add_done_callback(lambda reading: self._begin(reading, patience))
        if not self.loaded:
            await asyncio.wait({self._reading})

    def _begin(self, reading: asyncio.Future[Any], patience: asyncio.TimerHandle) -> None:
        """Continue with the rows of the file, followed by the rows that came meanwhile."""
        patience.cancel()
        if reading.cancelled():
            self._warn("it could not be read in time; check its disk")
        rows = None if reading.cancelled() else reading.result()
        if rows is None:
            self._end()
        self.loaded, self._from_file = True, bool(rows)
        self._take([*(rows or ()), *self._early])
        self._do(self._disk.append, self._early)

    async def place_early(self, row: JsonRow) -> None:
        """Append a row that comes before the file is loaded: after the file's rows, in the order of the calls."""
        self._early.append(row)
        await self.ready()
        await self.append([])

    async def append(self, rows: Sequence[JsonRow]) -> None:
        """Write rows that have been added to the history. Done when the system has them and all earlier ones."""
        await self._wait(self._do(self._disk.append, rows))

    async def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archive the file and continue with these rows."""
        self._from_file = self._from_file and bool(rows)
        await self._wait(self._do(self._disk.replace, rows))

    async def sync(self) -> None:
        """Force the written rows onto the disk itself."""
        await self._wait(self._do(self._disk.sync))

    async def accepted(self, ours: Sequence[JsonRow], theirs: list[JsonRow]) -> list[JsonRow] | None:
        """The rows that replace the history; None if they are the copy of ours that a resuming host has saved.

        Any other copy is a repair. It follows our leading system and developer rows, which hosts do not save, unless it
        begins with rows of that role.
        """
        if not self._from_file:
            return theirs
        many = len(ours) + len(theirs) > _MANY
        if await asyncio.to_thread(_is_copy, ours, theirs) if many else _is_copy(ours, theirs):
            return None
        brought = {row["role"] for row in _leading_system(theirs)}
        return [*(row for row in _leading_system(ours) if row["role"] not in brought), *theirs]

    async def close(self) -> None:
        """Sync and release the file, within seconds; the disk finishes slower work by itself."""
        if self._reading is not None and not self.loaded:
            await asyncio.wait({self._reading}, timeout=_WAIT_SECONDS)
            self._reading.cancel()
            await asyncio.wait({self._reading})
        if self.loaded:
            self._do(self._disk.sync)
        await asyncio.wait({self._end()}, timeout=_WAIT_SECONDS)

    async def _wait(self, work: asyncio.Future[Any]) -> None:
        """Wait for the disk, but not while earlier work is late."""
        if self._late is None or self._late.done():
            await asyncio.wait({work}, timeout=_WAIT_SECONDS)
            self._late = work

    def _do(self, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Let the file's thread do this after all earlier work."""
        if not self._ended:
            return asyncio.wrap_future(self._thread.submit(self._attempt, work, *args))
        nothing = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        return nothing

    def _end(self) -> asyncio.Future[Any]:
        """Let go of the file after all earlier work; later rows stay in memory."""
        closing = self._do(self._disk.close)
        self._ended = True
        self._thread.shutdown(wait=False)
        return closing

    def _attempt(self, work: Callable[..., Any], *args: Any) -> Any:
        failed = self._disk.failed
        try:
            result = work(*args)
        except (OSError, RuntimeError, ValueError) as error:  # the latter two: no file can have this path
            self._disk.failed = True
            if not failed:
                self._warn(f"{error}; free disk space or correct persistence.path")
            return None
        if self._ended and work == self._disk.load:
            self._disk.close()  # it came too late
        if failed and not self._disk.failed:
            logger.info("history file %r: works again and holds every row", str(self._disk.path))
        return result

    def _warn(self, why: str) -> None:
        path = str(self._disk.path)  # %r, because a path may hold characters that a log cannot write
        logger.warning("history file %r: the session continues in memory: %s", path, why)


def session_path(path: str, coordinator: Any | None) -> str:
    """The path with the host's session id in place of `{session_id}`, as far as a file name can hold the id."""
    given = getattr(coordinator, "session_id", None)
    name = re.sub(r"[^\w.-]", "_", given) if isinstance(given, str) and given.strip(".") else "session"
    return path.replace("{session_id}", name)


def _is_copy(ours: Sequence[JsonRow], theirs: Sequence[JsonRow]) -> bool:
    """True if `theirs` equals `ours` after a host's filtering.

    The filter follows amplifier-app-cli (`SessionStore._save_transcript`) and amplifier-foundation
    (`sanitize_message`). Rows that it drops, and hook rows, may be there or not. The file has no ephemeral rows.
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
    """A row as hosts save it: without thinking, `content_blocks` and `None`, and through JSON."""
    kept = {key: value for key, value in row.items() if key not in _PRIVATE_KEYS}
    if blocks := blocks_of(row):
        kept["content"] = [block for block in blocks if block_type(block) not in PRIVATE_BLOCKS]
    return saved_json(json.loads(json.dumps(kept)))


def _leading_system(rows: Iterable[JsonRow]) -> Iterable[JsonRow]:
    return itertools.takewhile(lambda row: row["role"] in SYSTEM_ROLES and not is_hook(row), rows)
