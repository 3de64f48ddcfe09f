"""The copy of the history that a host saves by itself, and brings back when it resumes a session."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

from context_summarize.messages.reading import block_type, blocks_of, is_ephemeral, is_hook
from context_summarize.messages.rows import PRIVATE_BLOCKS, SYSTEM_ROLES, JsonRow, saved_json
from context_summarize.messages.timing import timeless

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
