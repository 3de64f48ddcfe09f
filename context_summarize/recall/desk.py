"""`RecallDesk`: answers a session's queries, with an index that follows the history in slices on the event loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence

from context_summarize.background import Steps, end_tasks, in_slices
from context_summarize.core.history import History
from context_summarize.core.nodes import Node
from context_summarize.recall.index import PassageIndex
from context_summarize.recall.query import RecallAnswer, RecallQuery, WordsQuery
from context_summarize.recall.ranking import Ranking, rank
from context_summarize.recall.reader import RecallReader
from context_summarize.recall.rows import shown_row_steps
from context_summarize.recall.search import MAX_CHARS
from context_summarize.tokens.measure import Count

logger = logging.getLogger(__name__)


class RecallDesk:
    """The index of one session's history. It is made when somebody asks, and follows the history from then on.

    Where SQLite has no full-text search there is no index, one warning says so, and the history itself is searched.

    Args:
        count: tokens of a text.
        indexed: False searches the history itself, as where SQLite has no full-text search.
    """

    def __init__(self, count: Count, *, indexed: bool = True) -> None:
        self.reading = 0
        """Tokens of answers that are being read: calls of one turn run side by side and stand in no view yet."""
        self._count = count
        self._lock = asyncio.Lock()
        self._history: History | None = None
        self._index: PassageIndex | None = None
        self._groups = 0
        """Rendered groups of the history that are in the index."""
        self._steps: Steps[None] | None = None
        """What is being added; the next one who asks goes on where somebody was cancelled."""
        self._usable = indexed
        self._last: tuple[str, int, Ranking] | None = None
        """The last question with its answer, so that a cursor goes on where the answer stopped."""
        self._task: asyncio.Task[None] | None = None

    async def answer(
        self, history: History, nodes: Sequence[Node], frontier: int, query: RecallQuery, limit: int
    ) -> RecallAnswer:
        """The requested rows, within `limit` tokens.

        Args:
            nodes: the summaries that the view shows.
            frontier: rendered groups that it shows in summaries alone.

        Raises:
            RecallError: there are no such rows, or no room for an answer.
        """
        reader = RecallReader(history, nodes, self._count)
        self.reading += limit
        try:
            ranking = None
            asked = WordsQuery.of(query)
            if asked is not None and len(asked.text) <= MAX_CHARS:
                folded = history.message_range(0, frontier)[1] if frontier else 0
                until = reader.total if asked.until is None else asked.until
                ranking = await self._ranking(history, asked.text, until, folded)
            return await asyncio.to_thread(reader.answer, query, limit, ranking)
        finally:
            self.reading -= limit

    async def _ranking(self, history: History, text: str, until: int, folded: int) -> Ranking | None:
        """What the index knows of a question about the rows up to `until`; None where there is no index."""
        async with self._lock:
            await self._advance(history)
            if self._index is None:
                return None
            if self._last is None or self._last[:2] != (text, until):
                try:
                    self._last = text, until, await in_slices(rank(self._index, text, until, folded))
                except sqlite3.Error as error:
                    self._give_up(error)
                    return None
            return self._last[2]

    def ahead(self, history: History) -> None:
        """Bring the index in step in the background, if the session's frames name the tool."""
        in_step = self._history is history and self._groups == len(history.rendered)
        if self._usable and history.recall and not in_step and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._ahead(history), name="context-summarize:recall-index")

    async def _ahead(self, history: History) -> None:
        async with self._lock:
            await self._advance(history)

    async def _advance(self, history: History) -> None:
        if not self._usable:
            return
        if self._history is not history:
            self._forget()
        try:
            if self._index is None:
                self._index, self._history = PassageIndex(), history
            if self._steps is None:
                self._steps = self._added(self._index, history)
            await in_slices(self._steps)
            self._steps = None
        except sqlite3.Error as error:
            self._give_up(error)

    def _added(self, index: PassageIndex, history: History) -> Steps[None]:
        while self._groups < len(history.rendered):
            first = history.rendered_rows[self._groups] + 1
            rows = yield from shown_row_steps(history.rows, history.rendered_group(self._groups), first)
            for shown in rows:
                yield from index.add((yield from shown.searched_steps()))
            self._groups += 1
            yield
        yield from index.commit()

    def _give_up(self, error: sqlite3.Error) -> None:
        if self._usable:  # else the session has ended meanwhile
            logger.warning(
                "recall searches the history itself, more slowly: SQLite's full-text search fails: %s", error
            )
        self._usable = False
        self._forget()

    def _forget(self) -> None:
        if self._index is not None:
            self._index.close()
        self._history, self._index, self._groups, self._steps, self._last = None, None, 0, None, None

    async def close(self) -> None:
        """End what is under way and let go of the index."""
        if self._task is not None:
            await end_tasks([self._task])
        self._usable = False
        self._forget()
