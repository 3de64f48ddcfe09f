"""Reads the lines of Claude Code's session files: which hold a message, and which together hold one answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from context_summarize.messages.reading import ids_of_results
from context_summarize.messages.rows import JsonRow

_NOT_SPOKEN = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Marks of lines that are no part of the conversation: sub-agents, the program's own notes, its summaries, errors."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that holds a message, or a part of one."""

    message: Any
    """Not checked."""
    id: str | None
    """Of the model's answer, whose blocks stand on lines of their own; None for another message."""


def is_line(value: Any) -> bool:
    """True for a line of such a file: an object with a type, which is not a message itself."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "role" not in value


def read_line(value: dict[str, Any]) -> Line | None:
    """The message of a line; None for a line that is no part of the conversation."""
    message = value.get("message")
    if value["type"] not in ("user", "assistant") or any(value.get(mark) is True for mark in _NOT_SPOKEN):
        return None
    if not isinstance(message, dict):
        return Line(message, None)
    content = message.get("content")
    if content is None or content == [] or content == "":
        return None
    role = message.get("role", value["type"])
    answer = message.get("id") if role == "assistant" else None
    return Line({"role": role, "content": content}, answer if isinstance(answer, str) and answer else None)


def joined(rows: Iterable[tuple[JsonRow, str | None]]) -> tuple[list[JsonRow], list[int]]:
    """The rows in order, with the blocks of each answer in one row, where its first block stood.

    An answer with several calls is stored as a line for each call, and results stand between them. Where another
    message stands between them, the parts stay rows of their own: joining them would change the order.

    Args:
        rows: (message, id of the answer that it is a part of).

    Returns:
        The rows, and the positions among them of the parts that stand apart from the answer's earlier part.
    """
    found: list[JsonRow] = []
    apart: list[int] = []
    begun: JsonRow = {}
    answers = Answers()
    for row, answer in rows:
        if answers.goes_on(row, answer):
            begun["content"] = [*_blocks(begun["content"]), *_blocks(row["content"])]
            continue
        if answers.is_apart:
            apart.append(len(found))
        if answer is not None:
            begun = row
        found.append(row)
    return found, apart


class Answers:
    """Tells which lines go on with an answer that an earlier line has begun."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._current: str | None = None
        self.is_apart = False
        """True if the last line is a part of an earlier answer, but stands apart from it."""

    def goes_on(self, row: JsonRow, answer: str | None) -> bool:
        """True if the next line's row is a part of the message that was begun last. `answer` as in `joined`."""
        if answer is not None and answer == self._current:
            return True
        self.is_apart = answer in self._known
        if answer is not None:
            self._known.add(answer)
            self._current = answer
        elif not _holds_results(row):
            self._current = None
        return False


def _holds_results(row: JsonRow) -> bool:
    return row["role"] in ("tool", "user") and any(True for _ in ids_of_results(row))


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
