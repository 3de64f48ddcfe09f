"""`RecallService`: answers a session's queries, with an index of passages in SQLite's full-text search, in memory."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import sqlite3
import threading
import unicodedata
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import regex

from context_summarize.core.log import Log
from context_summarize.errors import RecallError
from context_summarize.recall.answer import Answers, Found, RecallAnswer, RecallQuery, Rows
from context_summarize.tokens.measure import Count

logger = logging.getLogger(__name__)

_PASSAGE = 170
"""After this many characters a passage ends with its sentence. Short passages answer more questions than long ones."""
_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[\u3002\uff01\uff1b\uff1f])|\n+")
_MARK = re.compile(r"[\s,;|&<>(){}\[\]]")
_WORD = regex.compile(r"[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{Co}\p{M}]*")
"""A word as FTS5 separates it."""
_CHARACTER = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff])")
"""A character of a script that puts no blanks between words (Chinese, Thai), or uses them otherwise (Korean). Each
counts as a word."""
_STOP_LIST = """
a about after again all also am an and any are as at be been before being between both but by can could did do does
doing during each for from had has have he her here him his how i if in into is it its just like many me more most much
my no not of on only or other our out over please said same say she should show so some such tell than that the their
them then there these they this those to too under until up us very was we were what when where which while who whom
whose why will with would you your
"""
_STOP_WORDS = frozenset(_STOP_LIST.split())
"""Words of a question that do not say what it is about, even if few messages contain them."""
_POSTINGS = 5_000
"""Passages read for one question: the rarest words come first, and common words beyond this number are left out."""
_PASSAGES, _ROWS = 400, 300
"""Most passages that are scored, and most rows that are ranked."""
_SHARE = 2.0
"""Extra weight of a passage that contains all words of the question."""
_LONG_ROW = 0.4
"""Penalty of a long row: by chance one of its many passages contains some of the words."""
_BESIDE, _AROUND = 0.4, 0.2
"""Shares of other rows' scores that a row gets: of the better of its two neighbours, because a question and its answer
are neighbours; and, if the row has one passage only, as in a chat, of each of the four nearest rows."""
_SEEN = 0.5
"""Factor of a row that the view still shows: the model can read it there."""
_WIDE = 4
"""Best rows whose passage is shown with its neighbours."""


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
        self._following: asyncio.Future[Any] | None = None
        self._closed = self._failed = False

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
        if query.messages is not None:
            return answers.messages(query.messages)
        return answers.passages(*self._search(answers.rows, query.words or "", summarised))

    def follow(self, log: Log) -> None:
        """Updates the index in the background. Called only in sessions whose model may use the tool."""
        is_idle = self._following is None or self._following.done()
        if is_idle and not (self._closed or self._failed):
            work = asyncio.to_thread(self._search, Rows(log), "", 0)
            self._following = asyncio.gather(work, return_exceptions=True)

    def _search(self, rows: Rows, words: str, summarised: int) -> tuple[list[Found], int | None]:
        """Adds the rows that the index lacks, and searches it. The result is that of `PassageIndex.rank`."""
        with self._lock:
            if self._closed:
                return [], None
            try:
                if self._index is None or self._log is not rows.log:
                    self._forget()
                    self._log, self._index = rows.log, PassageIndex()
                self._index.add(self._texts(rows))
                return self._index.rank(words, rows.total, summarised)
            except sqlite3.Error as error:
                self._forget()
                self._failed = True
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
        """Ends the work and drops the index, within a second. A thread that takes longer drops it at its end."""
        self._closed = True
        if self._following is not None:
            await asyncio.wait({self._following}, timeout=1)
        if self._lock.acquire(blocking=False):
            self._forget()
            self._lock.release()


class PassageIndex:
    """The passages of rows, in order, for one thread at a time. Raises sqlite3.Error without FTS5."""

    def __init__(self) -> None:
        self._added = 0
        self._rows, self._starts, self._ends = array("q"), array("q"), array("q")
        """For each passage the number of its row, and its start and end in the row's text."""
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            tokens = "porter unicode61 remove_diacritics 2"
            self._connection.execute(f"CREATE VIRTUAL TABLE passages USING fts5(text, content='', tokenize='{tokens}')")
        except sqlite3.Error:
            self._connection.close()
            raise

    def add(self, texts: Iterable[str]) -> None:
        """Adds the texts of the next rows; an empty text is a row without passages."""
        for text in texts:
            self._added += 1
            for start, end in passages(text):
                self._rows.append(self._added)
                self._starts.append(start)
                self._ends.append(end)
                passage = (len(self._rows), _comparable(text[start:end]))
                self._connection.execute("INSERT INTO passages(rowid, text) VALUES (?, ?)", passage)
        self._connection.commit()

    def close(self) -> None:
        """Frees the memory."""
        self._connection.close()

    def rank(self, question: str, until: int, summarised: int) -> tuple[list[Found], int | None]:
        """Returns the matching rows up to `until`, best first. Rows after `summarised`, if it is not 0, count less.

        Where rows contain several words just as given, one after the other, other rows do not match: an id with a
        hyphen is several words. Then it also returns how many other rows contain some of them, else None.
        """
        words = [match[0] for match in _WORD.finditer(_comparable(question))]
        terms, given, others = self._terms(words), f'"{" ".join(words)}"', None
        if " " in given and (found := [at for at in self._with(given) if self._rows[at - 1] <= until]):
            others = self._rows_with(" OR ".join(terms)) - self._rows_with(given)
            others = {row for row in others if row <= until}
            terms = {given: found}
        best: dict[int, int] = {}
        own: dict[int, float] = {}
        for score, passage in sorted(self._scores(terms, until), reverse=True):
            row = self._rows[passage - 1]
            if best.setdefault(row, passage) == passage:
                own[row] = score / (1 + _LONG_ROW * math.log(len(self._passages(row))))
        rows: dict[int, float] = {}
        near = {at for found in own for at in (found - 1, found, found + 1)}
        for row in near:
            short = len(self._passages(row)) == 1
            if row <= until and (short or row in own):
                rows[row] = own.get(row, 0.0) + _BESIDE * max(own.get(row - 1, 0.0), own.get(row + 1, 0.0))
                rows[row] += _AROUND * sum(own.get(row + step, 0.0) for step in (-2, -1, 1, 2)) if short else 0.0
                rows[row] *= _SEEN if row > summarised > 0 else 1.0
        order = sorted(rows, key=lambda row: (-rows[row], -row))[:_ROWS]
        found_rows = [(row, *self._span(row, best.get(row), at < _WIDE)) for at, row in enumerate(order)]
        return found_rows, None if others is None else len(others.difference(order))

    def _scores(self, terms: Mapping[str, Sequence[int]], until: int) -> list[tuple[float, int]]:
        """Returns (score, passage) of the best passages: BM25, increased with the share of the words they contain."""
        held: Counter[int] = Counter()
        phrases: list[str] = []
        left, first = _POSTINGS, 1
        for phrase, found in sorted(terms.items(), key=lambda term: len(term[1])):
            if found and (len(found) <= left or not phrases):
                phrases.append(phrase)
                left -= len(found)
                first = found[-1] if left < 0 else first
                held.update(found)
        if not phrases:
            return []
        query = "SELECT rowid, rank FROM passages(?) WHERE rowid BETWEEN ? AND ? ORDER BY rank LIMIT ?"
        given = (" OR ".join(phrases), first, bisect_left(self._rows, until + 1), _PASSAGES)
        scored = self._connection.execute(query, given)
        return [(-score * (1 + _SHARE * held[passage] / len(phrases)), passage) for passage, score in scored]

    def _terms(self, words: Sequence[str]) -> dict[str, list[int]]:
        """Returns the search terms of a question, each with its passages: its words and pairs of them.

        A word that no passage contains becomes a search for words that begin with it.
        """
        words = [word for word in words if word not in _STOP_WORDS] or words
        of_word = {word: self._with(f'"{word}"') for word in words}
        terms = {f'"{word}"': found for word, found in of_word.items() if found}
        terms |= {f'"{word}"*': self._with(f'"{word}"*') for word, found in of_word.items() if not found}
        for one, other in pairwise(words):
            if max(len(of_word[one]), len(of_word[other])) <= _POSTINGS:
                terms[f'"{one} {other}"'] = self._with(f'"{one} {other}"')
        return terms

    def _with(self, phrase: str) -> list[int]:
        """Returns the newest passages that match this phrase of FTS5's language, at most one more than `_POSTINGS`."""
        query = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rowid DESC LIMIT ?"
        return [passage for (passage,) in self._connection.execute(query, (phrase, _POSTINGS + 1))]

    def _rows_with(self, phrases: str) -> set[int]:
        """Returns the rows that match this query of FTS5's language."""
        found = self._connection.execute("SELECT rowid FROM passages WHERE passages MATCH ?", (phrases,))
        return {self._rows[passage - 1] for (passage,) in found}

    def _passages(self, row: int) -> range:
        return range(bisect_left(self._rows, row) + 1, bisect_left(self._rows, row + 1) + 1)

    def _span(self, row: int, best: int | None, wide: bool) -> tuple[int, int]:
        """Returns start and end of a row's best passage, or its first one; with its neighbours if `wide`."""
        known = self._passages(row)
        best, more = best or known.start, int(wide)
        return self._starts[max(best - more, known.start) - 1], self._ends[min(best + more, known.stop - 1) - 1]


def passages(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of each passage of a few sentences, in order; together they are the whole text."""
    start = 0
    while start < len(text):
        if sentence := _END.search(text, start + _PASSAGE, start + 2 * _PASSAGE):
            end = sentence.end()
        elif (end := len(text)) - start > 2 * _PASSAGE:
            marks = list(_MARK.finditer(text, start + _PASSAGE // 2, start + _PASSAGE))
            end = marks[-1].end() if marks else start + _PASSAGE
        yield start, end
        start = end


def _comparable(text: str) -> str:
    """Returns the text for FTS5: in one case, without variants of characters and lone surrogates."""
    text = unicodedata.normalize("NFKC", text.casefold()).encode("utf-8", "replace").decode().replace("\0", " ")
    return _CHARACTER.sub(r" \1 ", text)
