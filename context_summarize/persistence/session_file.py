"""The history's file in a session: loaded before anything else, written with each row, synced at each request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from context_summarize.awake import wait_awake
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.history_file import Loaded
from context_summarize.persistence.host_copy import repaired, same_after_filtering
from context_summarize.persistence.journal import Journal

_LOAD_SECONDS = 30
"""How long a session waits for its file; then it continues in memory."""
_SYNC_SECONDS = 1.0
"""How long a request waits for the disk; slower work continues without the request."""
_MANY = 1_000
"""Number of rows above which a thread compares a host's copy."""


class SessionFile:
    """One session's `Journal`, and the rows that come before it is loaded.

    Args:
        path: the path from the setting.
        take: appends rows to the session's history.
    """

    def __init__(self, path: str, take: Callable[[Sequence[JsonRow]], None]) -> None:
        self._journal = Journal(path)
        self._take = take
        self._early: list[JsonRow] = []
        self._ready: asyncio.Future[None] | None = None
        """Done when the file is loaded; None before the first `ready()`."""
        self._patience: asyncio.TimerHandle | None = None
        self._owed: asyncio.Future[Any] | None = None
        """The work that the disk did not finish in time."""
        self._handed_over: asyncio.Future[None] | None = None
        """Done when the system has every row that came so far."""
        self.loaded = False
        self._from_file = False

    async def ready(self) -> None:
        """Wait until the file is loaded. The first call starts loading."""
        if self.loaded:
            return
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._keep_waiting(_LOAD_SECONDS)
            self._journal.load().add_done_callback(lambda loading: self._begin(loading.result()))
        await asyncio.wait([self._ready])

    def _keep_waiting(self, seconds: int) -> None:
        """Give the file up in so many seconds. They are counted one by one: a process that is stopped does not wait."""
        if seconds:
            self._patience = asyncio.get_running_loop().call_later(1, self._keep_waiting, seconds - 1)
        else:
            self._give_up(f"it could not be read within {_LOAD_SECONDS} s")

    def _begin(self, loaded: Loaded) -> None:
        """Continue with the rows of the file, followed by the rows that came meanwhile."""
        if self.loaded:
            return  # the file was given up before
        self.loaded = True
        self._from_file = bool(loaded.rows)
        early, self._early = self._early, []
        self._take([*loaded.rows, *early])
        self._handed_over = self._journal.append(early)
        assert self._ready is not None, "loading begins in ready()"
        assert self._patience is not None, "and ready() sets a time limit"
        self._patience.cancel()
        self._ready.set_result(None)

    def _give_up(self, why: str) -> None:
        self._journal.give_up(f"{why}; check its disk, and start a new session")
        self._begin(Loaded())

    async def place_early(self, row: JsonRow) -> None:
        """Append a row that comes before the file is loaded: after the file's rows, in the order of the calls."""
        self._early.append(row)
        await self.ready()
        await self.append([])

    async def append(self, rows: Sequence[JsonRow]) -> None:
        """Write rows that have been added to the history. Done when the system has them and all earlier ones."""
        work = self._journal.append(rows)
        if not work.done():  # or there is nothing to write in it
            self._handed_over = work
        if self._handed_over is not None:
            await self._wait(self._handed_over)

    async def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archive the file and continue with these rows."""
        self._from_file = self._from_file and bool(rows)
        self._handed_over = self._journal.replace(rows)
        await self._wait(self._handed_over)

    async def sync(self) -> None:
        """Force the written rows onto the disk. A request waits only a short time for this."""
        await self._wait(self._journal.sync())

    async def _wait(self, work: asyncio.Future[None]) -> None:
        """Wait a limited time for the disk; do not wait while earlier work is still late."""
        if self._owed is not None and not self._owed.done():
            return
        await wait_awake({work}, _SYNC_SECONDS)
        self._owed = work

    async def accepted(self, ours: Sequence[JsonRow], theirs: list[JsonRow]) -> list[JsonRow] | None:
        """The rows that replace the history; None if the host's copy equals our history after the host's filtering.

        When a session is resumed, hosts load their own transcript, less complete than ours, and pass it to
        `set_messages`. Any other difference is a repair.
        """
        if not self._from_file:
            return theirs
        many = len(ours) + len(theirs) > _MANY
        same = (
            await asyncio.to_thread(same_after_filtering, ours, theirs) if many else same_after_filtering(ours, theirs)
        )
        return None if same else repaired(ours, theirs)

    async def close(self) -> None:
        """Sync and release the file, within seconds; the disk finishes slower work by itself."""
        if self._ready is not None and not self.loaded:
            await asyncio.wait([self._ready], timeout=_SYNC_SECONDS)
            if not self.loaded:
                self._give_up("the session ended before the file was read")
        await asyncio.wait([self._journal.close()], timeout=_SYNC_SECONDS)


def session_path(path: str, coordinator: Any | None) -> str:
    """The path with the host's session id in place of `{session_id}`, as far as a file name can hold the id."""
    if "{session_id}" not in path:
        return path
    given = getattr(coordinator, "session_id", None)
    name = re.sub(r"[^\w.-]", "_", given) if isinstance(given, str) and given.strip(".") else "session"
    return path.replace("{session_id}", name)
