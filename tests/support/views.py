"""What tests look at in a view."""

from __future__ import annotations

from context_summarize.messages.rows import JsonRow
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

COUNT = TokenCounter().count


def size(view: list[JsonRow]) -> int:
    """Tokens of all its rows."""
    return sum(measure(row, COUNT) for row in view)


def nodes(view: list[JsonRow]) -> list[JsonRow]:
    """Its rows that stand for a range of messages."""
    return [row for row in view if "messages" in (row.get("metadata") or {})]
