"""`PassageIndex`: which passages of a history hold which words; SQLite's full-text search, in memory."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Iterable

from context_summarize.background import Steps
from context_summarize.recall.passages import passages

_BATCH = 16
"""Passages that one step adds: about a tenth of a millisecond."""
_BLANK = 64
"""Passages that one step passes over, because they hold nothing but blanks."""
_CLEANED = 500_000
"""Characters that one step makes fit for SQLite."""
_COMMIT = 2_048
"""Passages in one transaction."""
_MERGED = 16
"""Pages that one step merges: about two milliseconds. SQLite's own merges take ten times that, at any insert."""
_TABLE = (
    "CREATE VIRTUAL TABLE passages USING fts5(text, content='', columnsize=0,"
    " tokenize='porter unicode61 remove_diacritics 2')"
)


class PassageIndex:
    """Passages by number, from 1, in the order of their rows. Use it in the thread that made it.

    Raises:
        sqlite3.Error: this SQLite has no FTS5.
    """

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            self._connection.execute(_TABLE)
            for setting, value in (("automerge", 0), ("crisismerge", 1_000), ("hashsize", 1 << 18)):
                self._connection.execute("INSERT INTO passages(passages, rank) VALUES (?, ?)", (setting, value))
        except sqlite3.Error:
            self._connection.close()
            raise
        self._ends_of_rows = array("q")
        """Passages up to and with each row."""
        self._starts = array("q")
        self._ends = array("q")
        self.chars = 0
        """Characters of all passages."""

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return len(self._ends_of_rows)

    def add(self, text: str) -> Steps[None]:
        """Add the text of the next row; an empty text adds a row without passages. Finish the steps."""
        clean = yield from _clean(text)
        batch: list[tuple[int, str]] = []
        for at, (start, end) in enumerate(passages(clean), start=1):
            if at % _BLANK == 0:
                yield
            if clean[start:end].isspace():
                continue
            self._starts.append(start)
            self._ends.append(end)
            self.chars += end - start
            batch.append((len(self._starts), clean[start:end]))
            if len(batch) == _BATCH:
                yield from self._insert(batch)
                batch = []
        yield from self._insert(batch)
        self._ends_of_rows.append(len(self._starts))

    def _insert(self, batch: Iterable[tuple[int, str]]) -> Steps[None]:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", batch)
        yield
        if len(self) // _COMMIT > (len(self) - _BATCH) // _COMMIT:
            yield from self.commit()

    def commit(self) -> Steps[None]:
        """Write what has been added, and merge a little."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
            yield
            self._connection.execute("INSERT INTO passages(passages, rank) VALUES ('merge', ?)", (_MERGED,))
            yield

    def count(self, phrase: str, most: int) -> int:
        """How many passages hold this phrase of FTS5's query language, at most `most`."""
        query = "SELECT count(*) FROM (SELECT 1 FROM passages WHERE passages MATCH ? LIMIT ?)"
        return int(self._connection.execute(query, (phrase, most)).fetchone()[0])

    def passages_with(self, phrase: str, most: int) -> list[int]:
        """The passages that hold this phrase, at most so many of the newest."""
        query = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rowid DESC LIMIT ?"
        return [number for (number,) in self._connection.execute(query, (phrase, most))]

    def row_of(self, passage: int) -> int:
        """The number of a passage's row, from 1."""
        return bisect_right(self._ends_of_rows, passage - 1) + 1

    def passages_of(self, row: int) -> range:
        """The numbers of a row's passages; none for a row that is not there."""
        if not 1 <= row <= len(self._ends_of_rows):
            return range(0)
        first = self._ends_of_rows[row - 2] if row > 1 else 0
        return range(first + 1, self._ends_of_rows[row - 1] + 1)

    def span(self, passage: int) -> tuple[int, int]:
        """Where a passage starts and ends in its row's text."""
        return self._starts[passage - 1], self._ends[passage - 1]

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()


def _clean(text: str) -> Steps[str]:
    """The text as SQLite takes it: without lone surrogates and NUL."""
    pieces: list[str] = []
    is_clean = True
    for at in range(0, len(text), _CLEANED):
        piece = text[at : at + _CLEANED]
        pieces.append(piece.encode("utf-8", "replace").decode().replace("\0", " "))
        is_clean = is_clean and pieces[-1] == piece
        yield
    return text if is_clean else "".join(pieces)  # a copy of megabytes would be one long step
