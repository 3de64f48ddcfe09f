"""Compares a host's own copy of the history with ours: equal after the host's filtering, or a repair."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from context_summarize.messages.reading import block_type, is_ephemeral, is_hook
from context_summarize.messages.rows import PRIVATE_BLOCKS, SYSTEM_ROLES, JsonRow

_PRIVATE_KEYS = frozenset({"thinking_block", "thinking_text", "content_blocks"})


def same_after_filtering(ours: Sequence[JsonRow], theirs: Sequence[JsonRow]) -> bool:
    """True if `theirs` equals `ours` after a host's filtering. Both are rows of `messages.normalise`. Linear time.

    The filter follows amplifier-app-cli (`SessionStore._save_transcript`) and amplifier-foundation
    (`sanitize_message`). They drop system and developer rows, the keys `thinking_block` (its text becomes
    `thinking_text`) and `content_blocks`, and every `None` in a dict or a list. The rest goes through JSON. Hosts may
    also drop hook rows and thinking blocks. A row that may be dropped may also be present, unchanged and in its place.
    Ephemeral rows count on neither side, because the file has none.

    Everything else must be equal: text, calls with their arguments, results, metadata, and the order of the rows.
    """
    given = (row for row in theirs if not is_ephemeral(row))
    next_row = next(given, None)
    for row in ours:
        if is_ephemeral(row):
            continue
        if next_row is not None and row["role"] == next_row["role"] and _as_saved(row) == _as_saved(next_row):
            next_row = next(given, None)
        elif row["role"] not in SYSTEM_ROLES and not is_hook(row):
            return False
    return next_row is None


def repaired(ours: Sequence[JsonRow], theirs: Sequence[JsonRow]) -> list[JsonRow]:
    """Our leading system and developer rows, which hosts do not save, followed by `theirs`.

    If `theirs` begins with rows of one of these roles, they replace ours of that role.
    """
    brought = {row["role"] for row in _leading_system(theirs)}
    return [row for row in _leading_system(ours) if row["role"] not in brought] + list(theirs)


def _leading_system(rows: Sequence[JsonRow]) -> Iterable[JsonRow]:
    return itertools.takewhile(lambda row: row["role"] in SYSTEM_ROLES and not is_hook(row), rows)


def _as_saved(row: JsonRow) -> dict[str, Any]:
    """A form of a row that is equal for two rows exactly if they are equal after the host's filtering."""
    saved = {_key(key): value for key, value in row.items() if key not in _PRIVATE_KEYS}
    content = saved.get("content")
    if isinstance(content, list | tuple):
        saved["content"] = [block for block in content if block_type(block) not in PRIVATE_BLOCKS]
    return {key: _plain(value) for key, value in saved.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {_key(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value if item is not None]
    return (json.dumps(value),)  # in Python, True == 1 == 1.0, and NaN != NaN


def _key(key: Any) -> str:
    return key if type(key) is str else str(next(iter(json.loads(json.dumps({key: 0})))))
