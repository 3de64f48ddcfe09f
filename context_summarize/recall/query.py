"""Questions to `recall` and its answers, and how long an answer may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from context_summarize.errors import RecallError

MIN_TOKENS = 400
"""The least that an answer needs; below it the request is as good as full."""
MAX_TOKENS = 4_000


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


def limit_tokens(budget: int, free: int) -> int:
    """Tokens that an answer may hold, so that it makes no boundary by itself.

    A twentieth of the budget, 400 to 4,000; never more than half of `free`, the tokens left below the threshold.
    """
    return max(0, min(MAX_TOKENS, max(MIN_TOKENS, budget // 20), free // 2))
