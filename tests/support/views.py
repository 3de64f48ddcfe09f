"""What tests look at in a view."""

from __future__ import annotations

from collections.abc import Iterable

from context_summarize.testing import JsonRow, measure


def size(view: list[JsonRow]) -> int:
    """Tokens of all its rows."""
    return sum(map(measure, view))


def nodes(view: list[JsonRow]) -> list[JsonRow]:
    """Its rows that stand for a range of messages."""
    return [row for row in view if "messages" in (row.get("metadata") or {})]


def notes(view: list[JsonRow]) -> JsonRow | None:
    """Its row of notes."""
    found = [row for row in view if "notes" in (row.get("metadata") or {})]
    assert len(found) <= 1
    return found[0] if found else None


def untimed(rows: Iterable[JsonRow]) -> list[JsonRow]:
    """Rows as they were added: without the time and the mark of a view, and without empty marks."""
    return [_untimed(row) for row in rows]


def _untimed(row: JsonRow) -> JsonRow:
    marks = row.get("metadata")
    if marks and not isinstance(marks, dict):
        return row
    left = {key: value for key, value in (marks or {}).items() if key not in ("timestamp", "shown_by")}
    return {**{key: value for key, value in row.items() if key != "metadata"}, **({"metadata": left} if left else {})}
