"""The table of the SQLite store: entries, their age and their size."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.stores.codec import (
    DamagedEntry,
    OtherFormat,
    check_key,
    decode_record,
    decode_summary,
    encode_record,
    encode_summary,
)
from context_summarize.stores.sqlite_file import SqliteFile
from context_summarize.stores.sqlite_listing import Listing, list_sessions

logger = logging.getLogger(__name__)

T = TypeVar("T")
Kind: TypeAlias = Literal["summary", "record"]

MOST_RECORDS = 3
"""`find_records` returns at most this many: the caller adopts the first that fits, which is mostly the very first."""

_PUT = """INSERT INTO entries (kind, key, used, size, created, tokens, source_tokens, entry)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (kind, key) DO UPDATE SET used = excluded.used, size = excluded.size, created = excluded.created,
        tokens = excluded.tokens, source_tokens = excluded.source_tokens, entry = excluded.entry"""
_EVICT = """DELETE FROM entries WHERE rowid IN (
    SELECT rowid FROM (
        SELECT rowid, sum(size) OVER (ORDER BY used ROWS UNBOUNDED PRECEDING) - size AS older FROM entries
    ) WHERE older < ?)"""
_STATISTICS = """SELECT count(*), CAST(min(created) AS REAL), CAST(max(created) AS REAL),
    CAST(sum(tokens) AS INTEGER), CAST(sum(source_tokens) AS INTEGER) FROM entries WHERE kind = ?"""

_BATCH = 500  # keys in one query, below the 999 variables that old SQLite versions allow
_STAMP_SECONDS = 3600.0  # a `used` stamp younger than this is left alone
_PUTS_BETWEEN_AGE_CHECKS = 256
_SPARE = 16  # eviction frees a sixteenth of the bound at once, so that most puts need none
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What a store holds."""

    path: Path
    bytes: int
    """Size on disk, the write-ahead log included."""
    summaries: int
    records: int
    """Records of compactions."""
    oldest: float | None
    """When the oldest entry was made, in seconds since the epoch; None when there is no entry."""
    newest: float | None
    tokens: int
    """Tokens of all summaries together."""
    source_tokens: int
    """Tokens of what the summaries were made of."""


class Entries:
    """The entries of a file; every method runs on the store's thread."""

    def __init__(self, file: SqliteFile, max_bytes: int, max_age: float, now: Callable[[], float]) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._low_bytes = max_bytes - max_bytes // _SPARE
        self._max_age = max_age
        self._now = now
        self._read_lately: set[tuple[Kind, str]] = set()
        """Entries that were read and carry an old stamp; the next write stamps them, so that a read never writes."""
        self._puts = 0

    def run(self, work: Callable[[Entries], T]) -> T:
        """Do one piece of work; the errors of the file become `StoreUnavailable`."""
        return self._file.run(lambda: work(self))

    def close(self) -> None:
        if self._file.is_open and self._read_lately:
            try:
                with self._file.transaction() as connection:
                    self._stamp(connection)
            except sqlite3.Error:
                pass  # stamps only order what is evicted; a file that cannot be written is closed all the same
        self._file.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def summaries(self, keys: Sequence[str]) -> dict[str, Summary]:
        found: dict[str, Summary] = {}
        for batch in _batches(keys):
            found |= self._load("summary", batch, decode_summary, lambda summary: summary.key)
        return found

    def find(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        found: list[CompactionRecord] = []
        for batch in _batches(hashes):
            # The index alone tells which of them exist. Records are long, so only the wanted ones are read.
            there = {key for (key,) in self._file.rows(f"SELECT key {_among(batch)}", "record", *batch)}
            for hash_ in batch:
                if hash_ in there:
                    found += self._load("record", [hash_], decode_record, lambda record: record.hash).values()
                if len(found) == MOST_RECORDS:
                    return found
        return found

    def is_empty(self) -> bool:
        return not self._file.rows("SELECT 1 FROM entries WHERE kind = 'record' LIMIT 1")

    def statistics(self) -> StoreStatistics:
        empty = [(0, None, None, 0, 0)]
        summaries, records = ((self._file.rows(_STATISTICS, kind) or empty)[0] for kind in ("summary", "record"))
        times = [stamp for row in (summaries, records) for stamp in row[1:3] if stamp is not None]
        return StoreStatistics(
            path=self._file.path,
            bytes=self._file.size(),
            summaries=summaries[0],
            records=records[0],
            oldest=min(times, default=None),
            newest=max(times, default=None),
            tokens=summaries[3] or 0,
            source_tokens=summaries[4] or 0,
        )

    def listing(self) -> Listing:
        return list_sessions(self._file.rows)

    def _load(
        self, kind: Kind, keys: Sequence[str], decode: Callable[[str], T], key_of: Callable[[T], str]
    ) -> dict[str, T]:
        found: dict[str, T] = {}
        damaged: list[str] = []
        fresh = self._now() - _STAMP_SECONDS
        for key, stale, entry in self._file.rows(f"SELECT key, used < ?, entry {_among(keys)}", fresh, kind, *keys):
            try:
                value = decode(entry)
                check_key(key, key_of(value))
            except OtherFormat:
                continue  # another release reads it; a put of this key replaces it
            except DamagedEntry as error:
                logger.warning("summary store %s: a damaged %s is deleted: %s", self._file.path, kind, error)
                damaged.append(key)
                continue
            found[key] = value
            if stale:
                self._read_lately.add((kind, key))
        if damaged:
            self._delete(kind, damaged)
        return found

    def _delete(self, kind: Kind, keys: Sequence[str]) -> None:
        try:
            with self._file.transaction() as connection:
                connection.execute(f"DELETE {_among(keys)}", (kind, *keys))
        except sqlite3.Error as error:  # the others were read; a file that may only be read stays in use
            logger.debug("summary store %s: damaged entries stay: %s", self._file.path, error)

    # --- writing ------------------------------------------------------------------------------------------------------

    def put_summary(self, summary: Summary) -> None:
        about = (summary.created, summary.tokens, summary.source_tokens)
        self._put("summary", summary.key, encode_summary(summary), *about)

    def put_record(self, record: CompactionRecord) -> None:
        self._put("record", record.hash, encode_record(record), record.created, 0, 0)

    def _put(self, kind: Kind, key: str, entry: str, created: float, tokens: int, source_tokens: int) -> None:
        if len(entry) > self._low_bytes:
            return
        with self._file.transaction() as connection:
            self._stamp(connection)
            connection.execute(_PUT, (kind, key, self._now(), len(entry), created, tokens, source_tokens, entry))
            if self._puts % _PUTS_BETWEEN_AGE_CHECKS == 0:
                connection.execute("DELETE FROM entries WHERE used < ?", (self._now() - self._max_age,))
            self._evict(connection)
        self._puts += 1
        self._read_lately.clear()

    def _stamp(self, connection: sqlite3.Connection) -> None:
        stamps = [(self._now(), *entry) for entry in self._read_lately]
        connection.executemany("UPDATE entries SET used = ? WHERE kind = ? AND key = ?", stamps)

    def _evict(self, connection: sqlite3.Connection) -> None:
        if self._bytes_in_use(connection) <= self._max_bytes:
            return
        # In rounds: a page is free only when every entry on it is gone, which no sum of sizes predicts.
        while (surplus := self._bytes_in_use(connection) - self._low_bytes) > 0:
            if connection.execute(_EVICT, (surplus,)).rowcount == 0:
                return

    def _bytes_in_use(self, connection: sqlite3.Connection) -> int:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def clear(self) -> int:
        if self._file.size() == 0:
            return 0
        with self._file.transaction() as connection:
            removed = connection.execute("DELETE FROM entries").rowcount
        self._file.shrink()
        return removed


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))


def _among(keys: Sequence[str]) -> str:
    return f"FROM entries WHERE kind = ? AND key IN ({', '.join('?' * len(keys))})"
