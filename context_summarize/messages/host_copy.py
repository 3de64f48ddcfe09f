"""What hosts do with rows beside the view: they set and save the time of each, and bring back a copy of the history."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from context_summarize.messages.reading import block_type, blocks_of, is_ephemeral, is_hook
from context_summarize.messages.rows import PRIVATE_BLOCKS, SYSTEM_ROLES, JsonRow, compact_json, saved_json

TIME = "timestamp"
"""The time of a row in its metadata: hosts expect a context to set it, save it, and replay a session by it.

A row gets nothing else, and gets a time only if the host gave none. A model does not need it: sizes, keys and records
do not depend on it.
"""
_PRIVATE = dict.fromkeys(("thinking_block", "thinking_text", "content_blocks"))


def repaired(ours: list[JsonRow], theirs: list[JsonRow]) -> list[JsonRow]:
    """Returns the rows of the new history: ours, if `theirs` is a copy of them that a host has saved.

    Any other list is a repair. Hosts do not save leading system and developer rows: ours go before the list, for
    each role that does not lead it already.
    """
    if _is_copy(ours, theirs):
        return ours
    brought = {row["role"] for row in _leading_system(theirs)}
    return [*(row for row in _leading_system(ours) if row["role"] not in brought), *theirs]


def _is_copy(ours: Sequence[JsonRow], theirs: Sequence[JsonRow]) -> bool:
    """Returns True if `theirs` equals `ours` after a host's filtering.

    The filter follows amplifier-app-cli (`SessionStore._save_transcript`) and amplifier-foundation
    (`sanitize_message`). Rows that it drops, and hook rows, may be missing.
    """
    given, at = [_as_saved(row) for row in theirs if not is_ephemeral(row)], 0
    for row in ours:
        if at < len(given) and _as_saved(row) == given[at]:
            at += 1
        elif not (is_ephemeral(row) or is_hook(row) or row["role"] in SYSTEM_ROLES):
            return False
    return at == len(given)


def _as_saved(row: JsonRow) -> str:
    """Returns a row as hosts save it: without thinking, `None` and its time, and through JSON."""
    kept = {**timeless(row), **_PRIVATE}
    if blocks := blocks_of(row):
        kept["content"] = [block for block in blocks if block_type(block) not in PRIVATE_BLOCKS]
    return saved_json(json.loads(json.dumps(kept)))


def _leading_system(rows: Iterable[JsonRow]) -> Iterable[JsonRow]:
    return itertools.takewhile(lambda row: row["role"] in SYSTEM_ROLES and not is_hook(row), rows)


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
