"""The rows that a host adds: one by one, or as a whole history. They also go to the history's file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from context_summarize.background import in_thread
from context_summarize.core.log import Log
from context_summarize.errors import MessageError
from context_summarize.history_file import HistoryFile
from context_summarize.messages.checking import normalise
from context_summarize.messages.host_copy import repaired, set_times, time_text
from context_summarize.messages.reading import analyse, rough_size
from context_summarize.messages.rows import JsonRow, Row, equal_prefix
from context_summarize.session.saved import moved, named
from context_summarize.session.state import Session


class Incoming:
    """Takes in the rows of a session's host."""

    def __init__(self, session: Session, now: Callable[[], float]) -> None:
        self._session, self._now = session, now
        persistence = session.services.config.persistence
        warn = partial(session.services.outbox.notify, level="warning")
        session_id = session.host.session_id
        self.file = HistoryFile(str(persistence["path"]), session_id, warn) if persistence else None
        """The history's file; None where none is kept."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loading: asyncio.Task[None] | None = None
        self._early: list[JsonRow] | None = [] if self.file else None
        """Rows that come before the file is loaded; None afterwards."""
        self._added = 0
        """Counts the rows that were added one by one. So `set` and `clear` know how many came after their call."""

    async def ready(self) -> None:
        """Waits until the history's file has been read, if there is one. The first call starts reading.

        Raises:
            RuntimeError: the call comes from another event loop than the first one.
        """
        self._check_loop()
        if self._early is not None and self.file is not None:
            if self._loading is None:
                self._loading = asyncio.create_task(self._load(self.file), name="context-summarize:history")
            await asyncio.wait({self._loading})

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise RuntimeError(
                "this context belongs to another event loop; call all its methods within one asyncio.run(), or make "
                "a new context for each"
            )

    async def _load(self, file: HistoryFile) -> None:
        """Begins with the rows of the file, then those that came meanwhile."""
        rows = await file.do(file.load)
        if rows is None:
            await file.do(file.close)
        rows = rows or []
        fresh = await in_thread(500 * len(rows), _filled, self._session.fresh(), (), rows)
        async with self._session.turn:
            self._session.begin(fresh)
        early, self._early = self._early or [], None
        self._take(early)
        await file.do(file.append, early)

    async def close(self) -> None:
        """Ends the work on the history's file."""
        if self.file is not None:
            try:
                if self._loading is not None:
                    await self.ready()
            finally:  # also if the host waits no longer for a disk that hangs
                await asyncio.gather(self.file.do(self.file.sync), self.file.do(self.file.close))

    async def add(self, message: JsonRow) -> None:
        """Appends one message.

        Raises:
            ValueError: the row cannot be kept; nothing has changed.
        """
        self._check_loop()
        raw = normalise(message)
        set_times([raw], time_text(self._now()))
        self._added += 1
        if self._early is not None:
            self._early.append(raw)
            await self.ready()
            return
        # The row is appended before the first await, so that rows keep the order of the calls.
        log = self._session.log
        index = len(log)
        log.add(analyse(raw))
        if self.file is not None:
            await self.file.do(self.file.append, [raw])
        await self._session.host.counter.load()
        await in_thread(rough_size(raw), log.take_in, index)

    def _take(self, rows: Iterable[JsonRow]) -> None:
        """Appends normalised rows to the log."""
        for raw in rows:
            self._session.log.add(analyse(raw))

    async def set(self, messages: Iterable[JsonRow]) -> None:
        """Replaces the history.

        Raises:
            ValueError: a row cannot be kept; nothing has changed.
        """
        added, session = self._added, self._session
        await self.ready()
        async with session.turn:  # so that of several calls the last one wins
            log = session.log
            before = len(log) - (self._added - added)
            ours = [row.raw for row in log.rows[:before]]
            rows = await checked_rows(messages)
            await in_thread(50 * len(rows), set_times, rows, time_text(self._now()), ours)
            if self.file is not None and self.file.is_resumed and equal_prefix(ours, rows) < before:
                rows = await in_thread(rough_size(rows), repaired, ours, rows)
            same = equal_prefix(ours, rows)
            # Rows that came since the call are put after the host's new ones.
            is_overtaken = len(rows) > before and len(log) > before
            is_new = same < before or is_overtaken or (before == 0 and bool(rows))
            if is_new:
                rows = await self._replace(rows, same, before)
            else:
                self._take(rows[same:])
        if self.file is not None:
            write = self.file.replace if is_new else self.file.append
            await self.file.do(write, rows if is_new else rows[same:])

    async def _replace(self, rows: list[JsonRow], same: int, before: int) -> list[JsonRow]:
        """Makes a new history: `rows`, whose first `same` are unchanged, then the log's rows from `before` on.

        Returns:
            Its rows.
        """
        session, log = self._session, self._session.log
        kept = list(zip(log.rows[:same], log.tokens[:same], strict=True))
        fresh = await in_thread(500 * len(rows), _filled, session.fresh(), kept, rows[same:])
        pins = moved(named(session.cut.pins, log), fresh)
        added = [row.raw for row in log.rows[before:]]
        session.begin(fresh, pins)
        self._take(added)
        return [*rows, *added]

    async def clear(self) -> None:
        """Forgets every row that was added before this call."""
        added, session = self._added, self._session
        await self.ready()
        async with session.turn:
            later = [row.raw for row in session.log.rows[len(session.log) - (self._added - added) :]]
            session.begin(session.fresh(), is_resumed=True)
            session.texts.forget_failures()
            self._take(later)
        if self.file is not None:
            await self.file.do(self.file.replace, later)
        # This record, without pins, is written last, because the host may cancel meanwhile.
        session.saved.put(session.log, session.cuts)
        await session.saved.flush()


async def checked_rows(messages: object) -> list[JsonRow]:
    """Returns every row of a host, checked and copied.

    Raises:
        MessageError: `messages` is no list of rows, or one of them cannot be kept; the text names the row.
    """
    if isinstance(messages, str | bytes | dict) or not isinstance(messages, Iterable):
        raise MessageError(f"messages must be a list of messages, got {type(messages).__name__}")
    rows: list[JsonRow] = []
    for at, message in enumerate(messages, 1):
        try:
            rows.append(normalise(message))
        except MessageError as error:
            raise MessageError(f"message {at}: {error}") from None
        await asyncio.sleep(0)  # no thread checks them, because the host might change one meanwhile
    return rows


def _filled(fresh: Log, same: Sequence[tuple[Row, int]], others: Iterable[JsonRow]) -> Log:
    """Returns the fresh log with rows whose sizes are known, and other rows after them."""
    for row, tokens in same:
        fresh.add(row, tokens)
    for raw in others:
        fresh.add(analyse(raw))
    return fresh
