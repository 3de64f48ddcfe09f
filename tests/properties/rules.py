"""The rules of docs/design.md ("What always holds") as checks of one view against its history."""

from __future__ import annotations

from typing import Any

from amplifier_core.message_models import Message

from context_summarize.testing import broken_pairs, measure
from tests.support.views import nodes, notes, size

Rows = list[dict[str, Any]]


def marks_of(row: dict[str, Any]) -> dict[str, Any]:
    """The row's metadata; empty where it has none."""
    found = row.get("metadata")
    return found if isinstance(found, dict) else {}


def rendered(rows: Rows) -> Rows:
    """The rows that a summariser may see: none of the system, of hooks or of the moment."""
    return [
        row
        for row in rows
        if row["role"] not in ("system", "developer")
        and not row.get("ephemeral")
        and marks_of(row).get("source") != "hook"
    ]


def check_rules(view: Rows, history: Rows) -> None:
    """Rules 2, 3 and 6, whatever the budget."""
    check_shape(view)
    check_tiles(view)
    check_order(view, history)
    check_opening(view, history, len(nodes(view)))


def check_shape(view: Rows) -> None:
    """Rules 2 and 3: pairs are whole, and every row passes the host's `Message` and is marked."""
    assert broken_pairs(view) == []
    for row in view:
        Message(**row)
        assert row["metadata"]["shown_by"]


def check_tiles(view: Rows) -> None:
    """Rule 6: the summaries stand for all messages from the first one on, in order; notes tell of those before them."""
    next_message = 1
    for row in nodes(view):
        first, last = row["metadata"]["messages"]
        assert first == next_message <= last
        next_message = last + 1
    if (told := notes(view)) is not None:
        assert told["metadata"]["notes"] == [1, nodes(view[: view.index(told)])[-1]["metadata"]["messages"][1]]


def check_opening(view: Rows, history: Rows, compactions: int) -> None:
    """Rule 6: the conversation opens with a user message, if the history does or a compaction has been made."""
    body = [row for row in view if row["role"] not in ("system", "developer")]
    told = [row for row in history if row["role"] not in ("system", "developer")]
    starts = bool(told) and _is_user_message(told[0])
    if body and (starts or compactions):
        assert _is_user_message(body[0]), body[0]


def _is_user_message(row: dict[str, Any]) -> bool:
    content = row.get("content")
    holds = isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content)
    return row["role"] == "user" and marks_of(row).get("source") != "hook" and not holds


def check_order(view: Rows, history: Rows) -> None:
    """Rule 6: rows that stand verbatim keep the order of the conversation, tool runs aside."""
    texts = [_plain(row) for row in history if row["role"] == "user" and _plain(row) is not None]
    shown = [_plain(row) for row in view if row["role"] == "user" and _plain(row) in texts]
    following = iter(texts)
    for text in shown:
        assert text in following, f"{text!r} stands out of order"


def _plain(row: dict[str, Any]) -> str | None:
    content = row.get("content")
    return "" if content is None else content if isinstance(content, str) else None


def check_fits(view: Rows, budget: int, tokens: int | None = None) -> None:
    """Rule 7: within the budget, or as small as the rules allow: no row left that could be shortened.

    `tokens` is the size of the view as a provider counts it, where it has told; by default it is measured.
    """
    if (size(view) if tokens is None else tokens) <= budget:
        return
    for row in view:
        marks = marks_of(row)
        ours = marks.get("source") in ("context-summarize", "hook") or marks.get("ephemeral") or row.get("ephemeral")
        if row["role"] in ("system", "developer") and not ours:
            continue
        assert measure(row) <= 120, ("could still be shortened", measure(row), row)
