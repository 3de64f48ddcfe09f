"""The time of a row, `metadata.timestamp`: hosts expect a context to set it, save it, and replay a session by it.

A row gets nothing else, and gets a time only if the host gave none. A model does not need it: sizes, keys and records
do not depend on it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from datetime import UTC, datetime

from context_summarize.messages.rows import JsonRow, compact_json

TIME = "timestamp"


def time_text(seconds: float) -> str:
    """Returns a time in seconds since 1970 in the form of rows: ISO 8601, UTC, milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def set_times(rows: Iterable[JsonRow], now: str, ours: Iterable[JsonRow] = ()) -> None:
    """Sets the time of each row without one: the time of an equal row among `ours`, in order, else `now`."""
    without = [row for row in rows if not _has_time(row)]
    known: dict[str, deque[JsonRow]] = defaultdict(deque)
    for row in filter(_has_time, ours) if without else ():
        known[compact_json(timeless(row))].append(row)
    marks = {TIME: now}  # shared by all rows that have no other mark
    for row in without:
        same = known.get(compact_json(timeless(row))) if known else None
        if same:
            row["metadata"] = same.popleft().get("metadata")
        else:
            row["metadata"] = {**row["metadata"], **marks} if row.get("metadata") else marks


def timeless(row: JsonRow) -> JsonRow:
    """Returns the row without its time, for comparisons."""
    marks = row.get("metadata")
    if marks is not None and not isinstance(marks, dict):
        return row
    kept = {key: value for key, value in row.items() if key != "metadata"}
    left = {key: value for key, value in (marks or {}).items() if key != TIME}
    return {**kept, "metadata": left} if left else kept


def _has_time(row: JsonRow) -> bool:
    """Returns True if the host gave a time, in the metadata or as a key of the row, or if the metadata is no dict."""
    marks = row.get("metadata")
    if marks is not None and not isinstance(marks, dict):
        return True
    return (marks or {}).get(TIME) is not None or row.get(TIME) is not None
