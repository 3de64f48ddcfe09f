"""What a store's file holds, by session: its records put together by the segment that they begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from context_summarize.core.nodes import CompactionRecord, Node, Summary, leaves_of, with_children
from context_summarize.stores.codec import DamagedEntry, decode_record, decode_summary

_FIRST_WORDS = 200
"""Characters of a summary that are kept."""
_RECORDS = "SELECT key, created, size FROM entries WHERE kind = 'record' ORDER BY created"
_SUMMARIES = "SELECT key, size FROM entries WHERE kind = 'summary'"
_ENTRY = "SELECT entry FROM entries WHERE kind = ? AND key = ?"


class Rows(Protocol):
    """Answers a query of the file."""

    def __call__(self, sql: str, *values: Any) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class KeptSession:
    """The records and summaries of one session, and of those that were forked from it."""

    key: str
    """Key of the summary of its first messages: what tells it from other sessions."""
    oldest: float
    newest: float
    """When its first and its last record were written, in seconds since the epoch."""
    records: int
    """Compactions that can be resumed."""
    summaries: int
    """Summaries of those records that are still stored."""
    bytes: int
    """Size of these entries. A summary that two sessions share counts in both."""
    first_words: str
    """The beginning of its first summary, on one line; empty where that is gone."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a file holds."""

    sessions: tuple[KeptSession, ...]
    """The newest first."""
    others: int
    """Entries that belong to none of them: summaries without a record, and what this release cannot read."""
    other_bytes: int


@dataclass(slots=True)
class _Gathered:
    """The records of a session so far."""

    first: Node
    oldest: float
    newest: float = 0.0
    records: int = 0
    bytes: int = 0
    keys: set[str] = field(default_factory=set)

    def add(self, record: CompactionRecord, created: float, size: int) -> None:
        self.newest, self.records, self.bytes = created, self.records + 1, self.bytes + size
        self.keys.update(node.key for node in with_children(record.nodes))
        self.first = record.nodes[0]


def list_sessions(rows: Rows) -> Listing:
    """Put the entries of a file together by session. Nothing is marked as used."""
    sizes: dict[str, int] = dict(rows(_SUMMARIES))
    found: dict[str, _Gathered] = {}
    others = other_bytes = 0
    for key, created, size in rows(_RECORDS):
        record = _decoded(rows, "record", key, decode_record)
        if record is None or not record.nodes:
            others, other_bytes = others + 1, other_bytes + size
            continue
        first = next(leaves_of(record.nodes)).key
        found.setdefault(first, _Gathered(record.nodes[0], created)).add(record, created, size)
    shown = {key for gathered in found.values() for key in gathered.keys}
    loose = [size for key, size in sizes.items() if key not in shown]
    sessions = [_session(rows, key, gathered, sizes) for key, gathered in found.items()]
    sessions.sort(key=lambda session: (-session.newest, session.key))
    return Listing(tuple(sessions), others + len(loose), other_bytes + sum(loose))


def _session(rows: Rows, key: str, gathered: _Gathered, sizes: dict[str, int]) -> KeptSession:
    stored = [sizes[each] for each in gathered.keys if each in sizes]
    texts = (_decoded(rows, "summary", each, decode_summary) for each in (key, gathered.first.key) if each in sizes)
    words = next((_words(summary) for summary in texts if summary is not None), "")
    total = gathered.bytes + sum(stored)
    return KeptSession(key, gathered.oldest, gathered.newest, gathered.records, len(stored), total, words)


def _decoded(rows: Rows, kind: str, key: str, decode: Callable[[str], Any]) -> Any:
    """An entry; None for one that is gone, damaged, or of a format of another release."""
    try:
        return next((decode(entry) for (entry,) in rows(_ENTRY, kind, key)), None)
    except DamagedEntry:
        return None


def _words(summary: Summary) -> str:
    lines = summary.text[: 10 * _FIRST_WORDS].splitlines()
    said = [
        line for line in lines if not (line.startswith("(") and line.endswith(")"))
    ]  # such a line tells who wrote it
    return " ".join(" ".join(said).replace("#", " ").replace("*", " ").split())[:_FIRST_WORDS]
