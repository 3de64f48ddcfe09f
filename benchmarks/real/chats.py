"""What a conversation with questions is, whatever data set it comes from, and where fetched data lies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.real.scoring import telling_words

DATA = Path(__file__).parent / "data"
"""Where `benchmarks.real.fetch` writes; git ignores it."""


class DataMissingError(Exception):
    """A file of a data set is not there, or a chat is held back."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn."""

    role: str
    """`user` or `assistant`; `system` and `tool` in recordings."""
    content: str
    """Its text."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What its row holds beside role and text, or in place of the text: tool calls, a tool's name."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a chat, with its gold answer and the turns that hold it."""

    kind: str
    text: str
    answer: str
    sources: tuple[int, ...]
    """Indexes of the messages that hold the answer; empty where the data set names none."""
    golds: tuple[str, ...]
    """Values of the answer (numbers, dates, names) that stand in the source messages too; empty for other answers."""
    instruction: str | None = None
    """The user's standing instruction that the question tests, if it tests one."""
    subject: str | None = None
    """The identifier that the question is about, where only its presence beside a value says what the value is."""

    @property
    def words(self) -> set[str]:
        """The words that must stand near a gold value."""
        return telling_words(self.subject or self.text)


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation and what is asked about it."""

    name: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The messages as a host hands them over."""
        return [{"role": one.role, "content": one.content, **one.extra} for one in self.messages]


def read_json(path: Path) -> object:
    """A file of a data set.

    Raises:
        DataMissingError: the file is not there.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataMissingError(f"{path} is missing; run python -m benchmarks.real.fetch") from None
