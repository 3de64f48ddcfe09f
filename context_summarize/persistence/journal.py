"""The history on disk: one file of one JSON line a row, written by one session at a time."""

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
    """One history file, appended to by one session at a time.

    No method raises for what is wrong with the file: then there is one warning, `failed` is true, and the file is left
    alone from then on. All work on the file is done by one thread, in the order of the calls. A call has its place in
    that order when it returns; what it returns may be awaited, or let be: the work is done once in either case. Nothing
    is opened before the first call. Rows are those of `messages.normalise` and are not changed afterwards.

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
        """True once the file could not be used: rows stay in memory."""
        return self._failed

    def load(self) -> asyncio.Future[Loaded]:
        """Every row of the file, in order; the file is made if it is missing.

        A torn last line is cut off. A file with damaged lines is archived, and goes on with the lines that are whole.
        """
        return self._run(Loaded(), self._file.load)

    def append(self, rows: Iterable[JsonRow]) -> asyncio.Future[None]:
        """Write rows at the end, ephemeral ones aside. They outlive this process; `sync` makes them outlive a crash."""
        kept = [row for row in rows if not is_ephemeral(row)]
        return self._run(None, self._file.append, kept) if kept else _done(None)

    def sync(self) -> asyncio.Future[None]:
        """Done once all rows appended so far are on the disk itself."""
        return self._run(None, self._file.sync)

    def replace(self, rows: Iterable[JsonRow]) -> asyncio.Future[None]:
        """Archive the file beside itself, if it holds any row, and go on with these rows instead."""
        return self._run(None, self._file.replace, [row for row in rows if not is_ephemeral(row)])

    def close(self) -> asyncio.Future[None]:
        """Sync and let go of the file. Rows that come later stay in memory."""
        if self._closed:
            return _done(None)
        self._closed = True
        closing = self._submit(None, self._file.close)
        self._thread.shutdown(wait=False)
        return closing

    def give_up(self, why: str) -> None:
        """Leave the file alone from now on, with one warning. What its thread is at comes to nothing."""
        if not self._failed:
            self._failed = True
            path = str(self._file.path)  # may hold what no log can write: shown as Python shows it
            logger.warning("history file %r: the session goes on in memory: %s", path, why)

    def _run(self, otherwise: T, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Have the thread do this after all that it was given before, whether or not the caller waits to the end."""
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
                remedy = "" if isinstance(error, Refused) else "; make room or correct persistence.path, and start anew"
                self.give_up(f"{error}{remedy}")
            else:
                if not self._failed:
                    return result
        self._file.abandon()  # also what was opened while the file was given up
        return otherwise


def _done(result: T) -> asyncio.Future[T]:
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done.set_result(result)
    return done
