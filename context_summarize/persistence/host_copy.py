"""A host's own copy of the history: whether it is what the host has kept of ours, and what a repair by it makes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from context_summarize.messages.reading import block_type, is_ephemeral, is_hook
from context_summarize.messages.rows import PRIVATE_BLOCKS, SYSTEM_ROLES, JsonRow

_PRIVATE_KEYS = frozenset({"thinking_block", "thinking_text", "content_blocks"})


def same_after_filtering(ours: Sequence[JsonRow], theirs: Sequence[JsonRow]) -> bool:
    """True when `theirs` is what a host has kept of `ours`; both are rows of `messages.normalise`. In linear time.

    The rules are those of amplifier-app-cli (`SessionStore._save_transcript`) over amplifier-foundation
    (`sanitize_message`): rows of role system and developer are dropped; so are the keys `thinking_block` (its text
    becomes `thinking_text`) and `content_blocks`; so is every `None` in a dict or a list; and the rest goes through
    JSON. Beyond these, hosts may drop hook rows and thinking blocks. Rows that may be dropped may be there all the
    same, in their place and unchanged. Ephemeral rows do not count on either side, since the file has none.

    All else has to be equal: text, calls with their arguments, results, metadata, and the order of the rows.
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
    """`theirs` as given, after our leading system and developer rows, which hosts do not save.

    Where `theirs` begins with rows of one of these roles, they are the host's word on it, and ours of that role go.
    """
    brought = {row["role"] for row in _leading_system(theirs)}
    return [row for row in _leading_system(ours) if row["role"] not in brought] + list(theirs)


def _leading_system(rows: Sequence[JsonRow]) -> Iterable[JsonRow]:
    return itertools.takewhile(lambda row: row["role"] in SYSTEM_ROLES and not is_hook(row), rows)


def _as_saved(row: JsonRow) -> dict[str, Any]:
    """A row in a form that is equal for equal rows after the host's filtering, and for no others."""
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
    return (json.dumps(value),)  # in Python, True == 1 == 1.0, and NaN is not itself


def _key(key: Any) -> str:
    return key if type(key) is str else str(next(iter(json.loads(json.dumps({key: 0})))))
