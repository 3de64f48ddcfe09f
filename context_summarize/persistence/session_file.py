"""The history's file in a session: loaded before anything else happens, written as rows come, synced per request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.history_file import Loaded
from context_summarize.persistence.host_copy import repaired, same_after_filtering
from context_summarize.persistence.journal import Journal

_LOAD_SECONDS = 30.0
"""How long a session waits for its file; after that it goes on in memory."""
_SYNC_SECONDS = 1.0
"""How long a request waits for the disk; the work goes on when it takes longer."""
_MANY = 1_000
"""Rows above which a host's copy is compared in a thread."""


class SessionFile:
    """One session's `Journal`, and the rows that came before it was loaded.

    Args:
        path: as the setting gives it.
        take: appends rows to the session's history.
    """

    def __init__(self, path: str, take: Callable[[Sequence[JsonRow]], None]) -> None:
        self._journal = Journal(path)
        self._take = take
        self._early: list[JsonRow] = []
        self._ready: asyncio.Future[None] | None = None
        """Done once the file has been loaded; None while nobody has asked."""
        self._patience: asyncio.TimerHandle | None = None
        self._owed: asyncio.Future[Any] | None = None
        """What the disk was waited for in vain."""
        self.loaded = False
        self._from_file = False

    async def ready(self) -> None:
        """Until the file has been loaded; the first call begins it."""
        if self.loaded:
            return
        if self._ready is None:
            loop = asyncio.get_running_loop()
            self._ready = loop.create_future()
            self._patience = loop.call_later(
                _LOAD_SECONDS, self._give_up, f"it could not be read within {_LOAD_SECONDS:g} s"
            )
            self._journal.load().add_done_callback(lambda loading: self._begin(loading.result()))
        await asyncio.wait([self._ready])

    def _begin(self, loaded: Loaded) -> None:
        """Go on with the rows of the file, and after them those that have come meanwhile."""
        if self.loaded:
            return  # given up before
        self.loaded = True
        self._from_file = bool(loaded.rows)
        early, self._early = self._early, []
        self._take([*loaded.rows, *early])
        self._journal.append(early)
        assert self._ready is not None, "loading begins in ready()"
        assert self._patience is not None, "and with a bound"
        self._patience.cancel()
        self._ready.set_result(None)

    def _give_up(self, why: str) -> None:
        self._journal.give_up(f"{why}; see that its disk answers, and start anew")
        self._begin(Loaded())

    async def place_early(self, row: JsonRow) -> None:
        """Have a row that comes before the file is loaded appended after the file's rows, in order of the calls."""
        self._early.append(row)
        await self.ready()

    async def append(self, rows: Sequence[JsonRow]) -> None:
        """Write rows that were appended to the history."""
        await self._wait(self._journal.append(rows))

    async def replace(self, rows: Sequence[JsonRow]) -> None:
        """Archive the file and go on with these rows."""
        self._from_file = self._from_file and bool(rows)
        await self._wait(self._journal.replace(rows))

    async def sync(self) -> None:
        """Have the disk hold what was written, without keeping a request from going on for long."""
        await self._wait(self._journal.sync())

    async def _wait(self, work: asyncio.Future[None]) -> None:
        """Until the disk has done this, for a while; not at all while it is still at what was waited for in vain."""
        if self._owed is not None and not self._owed.done():
            return
        await asyncio.wait([work], timeout=_SYNC_SECONDS)
        self._owed = work

    async def accepted(self, ours: Sequence[JsonRow], theirs: list[JsonRow]) -> list[JsonRow] | None:
        """What `set_messages` makes of a host's copy: None when it is what the host has kept of ours, else a repair.

        Hosts load a transcript of their own, less complete than ours, and hand it over when a session is resumed.
        """
        if not self._from_file:
            return theirs
        many = len(ours) + len(theirs) > _MANY
        same = (
            await asyncio.to_thread(same_after_filtering, ours, theirs) if many else same_after_filtering(ours, theirs)
        )
        return None if same else repaired(ours, theirs)

    async def close(self) -> None:
        """Sync and let go of the file, within seconds: what the disk has not done by then it does by itself."""
        if self._ready is not None and not self.loaded:
            await asyncio.wait([self._ready], timeout=_SYNC_SECONDS)
            if not self.loaded:
                self._give_up("the session ends before it could be read")
        await asyncio.wait([self._journal.close()], timeout=_SYNC_SECONDS)


def session_path(path: str, coordinator: Any | None) -> str:
    """The path with `{session_id}` replaced by the host's id of the session, as far as a file name can hold it."""
    if "{session_id}" not in path:
        return path
    given = getattr(coordinator, "session_id", None)
    name = re.sub(r"[^\w.-]", "_", given) if isinstance(given, str) and given.strip(".") else "session"
    return path.replace("{session_id}", name)
