"""`RecallService`: answers a session's queries, with an index of passages in SQLite's full-text search, in memory."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Iterator

from context_summarize.core.log import Log
from context_summarize.errors import RecallError
from context_summarize.recall.answer import Answers, RecallAnswer, RecallQuery, Rows
from context_summarize.recall.index import Findings, PassageIndex
from context_summarize.recall.places import Places
from context_summarize.tokens.measure import Count

logger = logging.getLogger(__name__)


class RecallService:
    """Reads the history of one session back; `count` returns the tokens of a text."""

    def __init__(self, count: Count) -> None:
        self.reading = 0
        """Tokens reserved for answers that are being made, which no view counts yet. Parallel calls share the room."""
        self._count = count
        self._lock = threading.Lock()
        """Held by the thread that uses the index."""
        self._log: Log | None = None
        self._index: PassageIndex | None = None
        self._groups = 0
        """Closed rendered groups of the history that are in the index."""
        self._closed = False

    async def answer(self, log: Log, frontier: int, query: RecallQuery, limit: int) -> RecallAnswer:
        """Returns the requested rows, within `limit` tokens; rendered groups before `frontier` are summarised.

        Raises:
            RecallError: there are no such rows, no room for an answer, or SQLite has no full-text search.
        """
        summarised = log.message_range(0, frontier)[1] if frontier else 0
        self.reading += limit
        try:
            return await asyncio.to_thread(self._answer, Answers(Rows(log), self._count, limit), summarised, query)
        finally:
            self.reading -= limit

    def _answer(self, answers: Answers, summarised: int, query: RecallQuery) -> RecallAnswer:
        first, last, offset = answers.range(query.messages)
        if query.words is None:
            return answers.messages(first, last, offset)
        has_range = query.messages is not None
        found = self._search(answers.rows, query.words, first, last, every_place=has_range)
        return Places(answers, found, query.words, summarised).quoted(in_order=has_range)

    def _search(self, rows: Rows, words: str, first: int, last: int, *, every_place: bool = False) -> Findings:
        """Adds the rows that the index lacks, and searches some of them; see `PassageIndex.find`."""
        with self._lock:
            if self._closed:
                return Findings(())
            try:
                if self._index is None or self._log is not rows.log:
                    self._forget()
                    self._log, self._index = rows.log, PassageIndex()
                self._index.add(self._texts(rows))
                return self._index.find(words, first, last, every_place=every_place)
            except sqlite3.Error as error:
                self._forget()
                text = f"SQLite's full-text search (FTS5) fails: {error}; ask by messages, not by words"
                logger.warning("recall: %s", text)
                raise RecallError(text) from error
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
        self._log, self._index, self._groups = None, None, 0

    async def close(self) -> None:
        """Drops the index. A thread that uses it drops it at its end, which is near."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._forget()
            self._lock.release()
