"""Recall, the way back to what was folded or shortened: queries, answers, and what the view tells of them. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .errors import ContextSummarizeError
from .history import History

NAME = "recall"
"""The name of the tool. What it returned is not searched again."""
MIN_TOKENS = 400
"""The least that an answer needs; below it the request is as good as full."""
MAX_TOKENS = 4_000
_ID_CHARS = 10


class RecallError(ContextSummarizeError, ValueError):
    """A query that cannot be answered; the text tells the model what to ask instead."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked for: exactly one of these.

    Raises:
        RecallError: none of them is given, or several.
    """

    messages: str | None = None
    """A range such as "13-58", or one number; numbers as summaries name them."""
    summary: str | None = None
    """The first 8 or more characters of a shown summary's id."""
    words: str | None = None
    """Words to look for; case and accents do not matter."""
    cursor: str | None = None
    """Where an earlier answer stopped, as that answer named it."""

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        if len(given) != 1:
            raise RecallError(
                f"give exactly one of messages, summary, words or cursor, not {' and '.join(given) or 'none'}"
            )

    @classmethod
    def from_input(cls, given: Any) -> RecallQuery:
        """A query from a tool's input; empty values count as not given, as models fill in every field.

        Raises:
            RecallError: an unknown field, a value that is no text, none of the fields given, or several.
        """
        if not isinstance(given, Mapping):
            raise RecallError(f"the input must be an object, got {type(given).__name__}")
        known = [field.name for field in fields(cls)]
        values: dict[str, str] = {}
        for name, value in given.items():
            if isinstance(name, str) and name.startswith("_"):
                continue  # hosts put marks of their own beside the model's input, such as _tool_call_id
            if name not in known:
                raise RecallError(f"unknown field {str(name)[:40]!r}; give one of {', '.join(known)}")
            if name == "messages" and isinstance(value, int) and not isinstance(value, bool):
                value = f"{value:d}" if value.bit_length() < 64 else "too many"
            if value is not None and not isinstance(value, str):
                raise RecallError(f"{name} must be text, got {type(value).__name__}")
            if value and value.strip():
                values[name] = value.strip()
        return cls(**values)


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """Rows as text, and where to go on."""

    text: str
    tokens: int
    """Size of the text, written as JSON, which some hosts do; never above the limit."""
    messages: tuple[int, ...]
    """Numbers of the rows in it, in the order in which they stand there."""
    cursor: str | None
    """What to ask for what did not fit; None when nothing is left."""


# --- what the view tells the model ----------------------------------------------------------------------------------


def summary_id(key: str) -> str:
    """The id of a summary, as a frame shows it."""
    return key[:_ID_CHARS]


def frame_hint(key: str) -> str:
    """What a frame says about asking for the originals, with a blank before it."""
    return f' Originals: {NAME}(summary="{summary_id(key)}").'


def row_hint(history: History, index: int) -> str:
    """What the mark in a shortened row says about asking for the whole; empty for a row without a number."""
    number = row_number(history, index)
    return "" if number is None else f'; whole: {NAME}(messages="{number}")'


def row_number(history: History, index: int) -> int | None:
    """The number of a history row, as frames count: rendered rows from 1. None for a row that is not rendered."""
    if not history.rows[index].rendered:
        return None
    ordinal = bisect_right(history.rendered, index, key=lambda at: history.groups[at].start) - 1
    if ordinal >= 0 and index < history.rendered_group(ordinal).end:
        start, before = history.rendered_group(ordinal).start, history.rendered_rows[ordinal]
    else:
        start, before = history.open_groups()[0].start, closed_rows(history)
    return before + sum(history.rows[at].rendered for at in range(start, index + 1))


def limit_tokens(budget: int, free: int) -> int:
    """Tokens that an answer may hold, so that it makes no boundary by itself.

    A twentieth of the budget, 400 to 4,000; never more than half of `free`, the tokens left below the threshold.
    """
    return max(0, min(MAX_TOKENS, max(MIN_TOKENS, budget // 20), free // 2))


def closed_rows(history: History) -> int:
    """Rendered rows in closed groups."""
    closed = len(history.rendered)
    return history.message_range(0, closed)[1] if closed else 0
