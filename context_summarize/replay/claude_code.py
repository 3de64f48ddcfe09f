"""Reads the lines of Claude Code's session files: which hold a message, and which together hold one answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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


def joined(rows: Iterable[tuple[JsonRow, str | None]]) -> list[JsonRow]:
    """The rows in order, with the blocks of each answer in one row, where its first block stood.

    An answer with several calls is stored as a line for each call, and results stand between them.

    Args:
        rows: (message, id of the answer that it is a part of).
    """
    found: list[JsonRow] = []
    answers: dict[str, JsonRow] = {}
    for row, answer in rows:
        begun = answers.get(answer) if answer is not None else None
        if begun is not None:
            begun["content"] = [*_blocks(begun["content"]), *_blocks(row["content"])]
            continue
        if answer is not None:
            answers[answer] = row
        found.append(row)
    return found


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
