"""The types of messages: rows as hosts store them, their calls, and what is known of a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

JsonRow: TypeAlias = dict[str, Any]
"""A message as the host stores it: role, content and whatever else the host put there."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an assistant row, whatever shape it came in."""

    id: str
    name: str
    arguments: Any


@dataclass(slots=True)
class Row:
    """What is known of one history row without reading its text again. Only `is_clean` is ever set later."""

    raw: JsonRow
    role: str
    rendered: bool
    """False for system, developer, hook and ephemeral rows: hosts do not save them."""
    user: bool
    """A user message: role user, no hook row, no reminder that the host stores, no tool result in it."""
    pinned: bool
    """Host system and developer rows, and rows marked critical."""
    ephemeral: bool
    calls: tuple[Call, ...]
    result_ids: tuple[str, ...]
    is_clean: bool = field(default=False, compare=False)
    """Its whole text was searched for secrets, and holds none: it is searched once, and rendered often."""


ROLES = ("system", "developer", "user", "assistant", "function", "tool")
SYSTEM_ROLES = ("system", "developer")
"""Roles of instructions; hosts do not save such rows."""
MAX_DEPTH = 200
"""Deepest nesting that is accepted; deeper rows break the JSON encoder of every host."""
MAX_INT_BITS = 14_000  # json.dumps refuses integers of more than 4,300 digits
SOURCE = "context-summarize"
"""`metadata.source` of the rows that this package makes."""
NO_RESULT = "no result recorded"

CALL_BLOCKS = ("tool_call", "tool_use")
TEXT_BLOCKS = ("text", "input_text", "output_text")
PRIVATE_BLOCKS = ("thinking", "redacted_thinking", "reasoning")
"""What a model thinks: signed by its provider, never summarised."""
