"""The history on disk: a file with one JSON line per row, written by one session at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from context_summarize.messages.reading import is_ephemeral
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.history_file import HistoryFile, Loaded, Refused

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Journal:
    """One history file; one session at a time appends to it.

    If something is wrong with the file, no method raises: there is one warning, `failed` becomes true, and the file is
    left alone from then on. One thread does all work on the file, in the order of the calls. A call is in this order
    when it returns. Its work is done once, whether or not the caller awaits the returned future. Nothing is opened
    before the first call. Rows come from `messages.normalise` and must not change afterwards.

    Args:
        path: the file; `~` is the home folder, and a relative path starts at the working directory of the first call.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = HistoryFile(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="context-summarize-history")
        self._failed = False
        self._closed = False

    @property
    def failed(self) -> bool:
        """True if the file cannot be used, so that rows stay in memory."""
        return self._failed

    def load(self) -> asyncio.Future[Loaded]:
        """Every row of the file, in order. A missing file is created.

        A torn last line is removed. A file with damaged lines is archived, and the new file has the intact lines.
        """
        return self._run(Loaded(), self._file.load)

    def append(self, rows: Iterable[JsonRow]) -> asyncio.Future[None]:
        """Write rows at the end, except ephemeral ones. They outlive this process; after `sync` also a crash."""
        kept = [row for row in rows if not is_ephemeral(row)]
        return self._run(None, self._file.append, kept) if kept else _done(None)

    def sync(self) -> asyncio.Future[None]:
        """Done when all rows appended so far are on the disk itself."""
        return self._run(None, self._file.sync)

    def replace(self, rows: Iterable[JsonRow]) -> asyncio.Future[None]:
        """Archive the file beside itself, if it holds any row, and continue with these rows instead."""
        return self._run(None, self._file.replace, [row for row in rows if not is_ephemeral(row)])

    def close(self) -> asyncio.Future[None]:
        """Sync and release the file. Later rows stay in memory."""
        if self._closed:
            return _done(None)
        self._closed = True
        closing = self._submit(None, self._file.close)
        self._thread.shutdown(wait=False)
        return closing

    def give_up(self, why: str) -> None:
        """Leave the file alone from now on, with one warning. Work that the thread has begun has no effect."""
        if not self._failed:
            self._failed = True
            path = str(self._file.path)  # %r, because a path may hold characters that a log cannot write
            logger.warning("history file %r: the session continues in memory: %s", path, why)

    def _run(self, otherwise: T, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Let the thread do this after all earlier work, whether or not the caller waits for it."""
        if self._closed or self._failed:
            return _done(otherwise)
        return self._submit(otherwise, work, *args)

    def _submit(self, otherwise: T, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        return asyncio.shield(asyncio.wrap_future(self._thread.submit(self._attempt, otherwise, work, *args)))

    def _attempt(self, otherwise: T, work: Callable[..., T], *args: Any) -> T:
        if not self._failed:
            try:
                result = work(*args)
            except OSError as error:
                again = "; free disk space or correct persistence.path, and start a new session"
                remedy = "" if isinstance(error, Refused) else again
                self.give_up(f"{error}{remedy}")
            else:
                if not self._failed:
                    return result
        self._file.abandon()  # also a file that was opened during give_up()
        return otherwise


def _done(result: T) -> asyncio.Future[T]:
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done.set_result(result)
    return done
