"""The history on disk: a file with one JSON line per row, written by one session at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from context_summarize.messages.reading import is_ephemeral
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.beside import Refused
from context_summarize.persistence.history_file import HistoryFile, Loaded, open_at_end
from context_summarize.persistence.history_writer import HistoryWriter

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS = 30.0
"""After an error, the file is tried again so often, and at each sync."""


class Journal:
    """One history file; one session at a time appends to it.

    If something is wrong with the file, no method raises: there is one warning, and `failed` becomes true. After an
    error of the disk, rows wait in memory, and the file is tried again at each sync and every half minute. Then rows
    that are missing come first, and one line says that the file works again. A file that belongs to another program or
    session is left alone for good.

    One thread does all work on the file, in the order of the calls. A call is in this order when it returns. Its work
    is done once, whether or not the caller awaits the returned future. Nothing is opened before the first call. Rows
    come from `messages.normalise` and must not change afterwards.

    Args:
        path: the file; `~` is the home folder, and a relative path starts at the working directory of the first call.
        opener: opens the file to write at its end; replaced in tests.
    """

    def __init__(self, path: str | Path, opener: Callable[[Path], BinaryIO] = open_at_end) -> None:
        self._file = HistoryWriter(HistoryFile(path, opener))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="context-summarize-history")
        self._given_up = False
        self._closed = False
        self._warned = False
        """True while the log's last word on the file is that it fails."""
        self._retry: asyncio.TimerHandle | None = None

    @property
    def failed(self) -> bool:
        """True while the file cannot be used, so that rows stay in memory."""
        return self._given_up or self._file.failed

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
        if self._retry is not None:
            self._retry.cancel()
        closing = self._submit(None, self._file.close)
        self._thread.shutdown(wait=False)
        return closing

    def give_up(self, why: str) -> None:
        """Leave the file alone from now on, with one warning. Work that the thread has begun has no effect."""
        if not self._given_up:
            self._given_up = True
            self._warn(why)

    def _warn(self, why: str) -> None:
        path = str(self._file.path)  # %r, because a path may hold characters that a log cannot write
        logger.warning("history file %r: the session continues in memory: %s", path, why)

    def _run(self, otherwise: T, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Let the thread do this after all earlier work, whether or not the caller waits for it."""
        if self._closed or self._given_up:
            return _done(otherwise)
        return self._submit(otherwise, work, *args)

    def _submit(self, otherwise: T, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        future = asyncio.wrap_future(self._thread.submit(self._attempt, otherwise, work, *args))
        future.add_done_callback(lambda _: self._plan_retry())
        return asyncio.shield(future)

    def _plan_retry(self) -> None:
        if self._file.failed and not self._given_up and not self._closed and self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if self._file.failed:
            self.sync()

    def _attempt(self, otherwise: T, work: Callable[..., T], *args: Any) -> T:
        if not self._given_up:
            waiting = self._file.missing
            try:
                result = work(*args)
            except Refused as error:
                self.give_up(str(error))
            except OSError as error:
                if not self._warned:
                    self._warned = True
                    self._warn(f"{error}; free disk space or correct persistence.path; the file is tried again")
                return otherwise
            else:
                if self._warned and not self._file.failed:
                    self._warned = False
                    logger.info("history file %r: works again, with %d rows that waited", str(self._file.path), waiting)
                if not self._given_up:
                    return result
        self._file.abandon()  # also a file that was opened during give_up()
        return otherwise


def _done(result: T) -> asyncio.Future[T]:
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done.set_result(result)
    return done
