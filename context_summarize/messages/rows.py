"""The types of messages: rows as hosts store them, their calls, and facts about a row. Also JSON of their values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

JsonRow: TypeAlias = dict[str, Any]
"""A message as the host stores it: role, content and any other keys."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an assistant row, read from any shape."""

    id: str
    name: str
    arguments: Any


@dataclass(slots=True)
class Row:
    """One history row with the facts that were read from it once. Only `is_clean` is set later."""

    raw: JsonRow
    role: str
    rendered: bool
    """False for system, developer, hook, ephemeral and hidden rows, and for instructions of the host."""
    user: bool
    """True for a user message: role user, no hook row, no stored reminder, no tool result."""
    pinned: bool
    """True for the host's system and developer rows, its instructions, and rows marked critical."""
    hidden: bool
    """True for a row that no view shows: an ended instruction, or a row that the host keeps for its own screen."""
    calls: tuple[Call, ...]
    result_ids: tuple[str, ...]
    is_clean: bool = field(default=False, compare=False)
    """True once the row was searched for known secrets and had none; it is not searched again."""


ROLES = ("system", "developer", "user", "assistant", "function", "tool")
SYSTEM_ROLES = ("system", "developer")
"""Roles of instructions; hosts do not save such rows."""
MAX_DEPTH = 200
"""Deepest nesting that is accepted; deeper rows break the JSON encoder of every host."""
MAX_INT_BITS = 14_000  # json.dumps refuses integers of more than 4,300 digits
SOURCE = "context-summarize"
"""`metadata.source` of the rows that this package makes."""
SHOWN = {"shown_by": SOURCE}
"""In the metadata of every row of a view: provider-anthropic takes a conversation whose metadata is empty for one that
has none, and then sets no cache breakpoints."""
LASTING = {"ephemeral": True, "persisted": True}
"""Marks of a row that hosts do not save and that stays as it is from request to request, so that it can be cached."""
NO_RESULT = "no result recorded"

CALL_BLOCKS = ("tool_call", "tool_use")
TEXT_BLOCKS = ("text", "input_text", "output_text")
PRIVATE_BLOCKS = ("thinking", "redacted_thinking", "reasoning")
"""Blocks with a model's reasoning: signed by its provider, never summarised."""


def equal_prefix(earlier: Sequence[Any], later: Sequence[Any]) -> int:
    """Returns how many items at the start of both lists are equal."""
    pairs = enumerate(zip(earlier, later, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(earlier), len(later)))


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str).encode


def compact_json(value: Any) -> str:
    """Returns JSON with sorted keys, so that equal data gives equal text on every machine."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def saved_json(value: Any) -> str:
    """Returns `compact_json` without None, which hosts do not save: a summary's key must not depend on it."""
    text = compact_json(value)
    return compact_json(_without_none(value)) if "null" in text else text


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value


def copy_json(value: Any) -> Any:
    """Copies dicts and lists at every depth; text and numbers are shared. For values that `normalise` accepted."""
    if isinstance(value, dict):
        return {key: item if type(item) is str else copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in value]
    return tuple(map(copy_json, value)) if isinstance(value, tuple) else value
