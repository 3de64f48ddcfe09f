"""`RecallService`: answers a session's queries; its index follows the history in threads beside the event loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

from context_summarize.core.history import History
from context_summarize.errors import RecallError
from context_summarize.recall.answer import Answers, RecallAnswer, RecallQuery, Rows
from context_summarize.recall.index import Found, PassageIndex
from context_summarize.tokens.measure import Count

logger = logging.getLogger(__name__)


class RecallService:
    """Reads the history of one session back; `count` gives the tokens of a text."""

    def __init__(self, count: Count) -> None:
        self.reading = 0
        """Tokens of answers that are being read: calls of one turn run side by side and stand in no view yet."""
        self._count = count
        self._lock = threading.Lock()
        """Held by the thread that uses the index."""
        self._history: History | None = None
        self._index: PassageIndex | None = None
        self._groups = 0
        """Closed rendered groups of the history that are in the index."""
        self._following: asyncio.Future[Any] | None = None
        self._closed = self._failed = False

    async def answer(self, history: History, frontier: int, query: RecallQuery, limit: int) -> RecallAnswer:
        """The requested rows, within `limit` tokens; rendered groups before `frontier` are summarised.

        Raises:
            RecallError: there are no such rows, no room for an answer, or SQLite has no full-text search.
        """
        seen = history.message_range(0, frontier)[1] if frontier else 0
        self.reading += limit
        try:
            return await asyncio.to_thread(self._answer, Answers(Rows(history), self._count, limit), seen, query)
        finally:
            self.reading -= limit

    def _answer(self, answers: Answers, summarised: int, query: RecallQuery) -> RecallAnswer:
        if query.messages is not None:
            return answers.messages(query.messages)
        return answers.passages(self._search(answers.rows, query.words or "", summarised))

    def follow(self, history: History) -> None:
        """Bring the index in step in the background; for sessions whose frames name the tool."""
        is_idle = self._following is None or self._following.done()
        if is_idle and not (self._closed or self._failed):
            work = asyncio.to_thread(self._search, Rows(history), "", 0)
            self._following = asyncio.gather(work, return_exceptions=True)

    def _search(self, rows: Rows, words: str, summarised: int) -> list[Found]:
        """Add to the index what it lacks of the rows, and search it."""
        with self._lock:
            if self._closed:
                return []
            try:
                if self._index is None or self._history is not rows.history:
                    self._forget()
                    self._history, self._index = rows.history, PassageIndex()
                self._index.add(self._texts(rows))
                return self._index.rank(words, rows.total, summarised)
            except sqlite3.Error as error:
                self._forget()
                self._failed = True
                says = f"SQLite's full-text search (FTS5) fails: {error}; ask by messages, not by words"
                logger.warning("recall: %s", says)
                raise RecallError(says) from error
            finally:
                if self._closed:
                    self._forget()

    def _texts(self, rows: Rows) -> Iterator[str]:
        while self._groups < rows.closed and not self._closed:
            yield from (shown.searched for shown in rows.group(self._groups))
            self._groups += 1

    def _forget(self) -> None:
        if self._index is not None:
            self._index.close()
        self._history, self._index, self._groups = None, None, 0

    async def close(self) -> None:
        """End what is under way and let go of the index, within a second; a thread that is slower does it by itself."""
        self._closed = True
        if self._following is not None:
            await asyncio.wait({self._following}, timeout=1)
        if self._lock.acquire(blocking=False):
            self._forget()
            self._lock.release()
