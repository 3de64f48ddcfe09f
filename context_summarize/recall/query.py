"""Queries and answers of `recall`, and the size limit of an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from context_summarize.errors import RecallError
from context_summarize.recall.tool_input import number_as_text, text_fields

MIN_TOKENS = 400
"""The least that an answer needs; below it the request counts as full."""
MAX_TOKENS = 4_000
_WORDS_CURSOR = re.compile(r"(?s)(\d{1,9})\+(\d{1,9}):(.+)")


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A query: exactly one of these fields.

    Raises:
        RecallError: no field is given, or several.
    """

    messages: str | None = None
    """A range such as "13-58", or one number; message numbers as in the frames of summaries."""
    summary: str | None = None
    """The first 8 or more characters of a shown summary's id."""
    words: str | None = None
    """Words to look for; case and accents do not matter."""
    cursor: str | None = None
    """The cursor that an earlier answer gave."""

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        if len(given) != 1:
            raise RecallError(
                f"give exactly one of messages, summary, words or cursor, not {' and '.join(given) or 'none'}"
            )

    @classmethod
    def from_input(cls, given: Any) -> RecallQuery:
        """A query from a tool's input; see `text_fields`.

        Raises:
            RecallError: the input has an unknown field, a value that is not text, no value, or several.
        """
        known = [field.name for field in fields(cls)]
        choice = f"one of {', '.join(known)}"
        return cls(**text_fields(given, known, choice=choice, as_text=number_as_text, refuse=RecallError))


@dataclass(frozen=True, slots=True)
class WordsQuery:
    """A search by words, or its continuation."""

    text: str
    """The words, with one blank between each."""
    until: int | None = None
    """The last row that the first answer could hold; None at the first one."""
    skip: int = 0
    """Rows that earlier answers held."""

    @classmethod
    def of(cls, query: RecallQuery) -> WordsQuery | None:
        """The search that a query asks for; None if it asks for something else."""
        if query.words is not None:
            return cls(_plain(query.words))
        if query.cursor is not None and (match := _WORDS_CURSOR.fullmatch(query.cursor)):
            return cls(_plain(match[3]), int(match[1]), int(match[2]))
        return None


def _plain(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """Rows as text, and a cursor for the rest."""

    text: str
    tokens: int
    """Size of the text written as JSON, because some hosts send it so; never above the limit."""
    messages: tuple[int, ...]
    """Numbers of the rows in the answer, in the order of the text."""
    cursor: str | None
    """The query for what did not fit; None if nothing is left."""


def limit_tokens(budget: int, free: int) -> int:
    """Tokens that an answer may hold, so that no next request has to wait for summaries because of it.

    A twentieth of the budget, within 400 … 4,000, but at most half of `free`, the tokens left until requests wait.
    """
    return max(0, min(MAX_TOKENS, max(MIN_TOKENS, budget // 20), free // 2))
