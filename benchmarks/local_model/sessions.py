"""The sessions that a real model plays: rows of a recording or of a real conversation, and what is asked about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.examiner import plain_values, read_probes
from benchmarks.real import beam
from benchmarks.real.chats import DATA, Chat, DataMissingError, Message, Question
from benchmarks.real.scoring import score, telling_words
from context_summarize.replay.session_files import read_session
from context_summarize.tokens.measure import Count, measure

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "examples" / "airline-desk.jsonl"
PROBES = ROOT / "benchmarks" / "probes.json"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose answer is made of exact values."""

    words: frozenset[str]
    """Its telling words."""
    golds: tuple[str, ...]
    last_row: int
    """Index of the last row that holds a part of the answer."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation to be played."""

    name: str
    rows: tuple[Row, ...]
    questions: tuple[Asked, ...]

    def cut(self, tokens: int, count: Count) -> Session:
        """Its first rows, of at least so many tokens as long as there are any, with the questions about them."""
        total = 0
        for at, row in enumerate(self.rows):
            total += measure(row, count)
            if total >= tokens:
                return self.first(at + 1)
        return self

    def first(self, rows: int) -> Session:
        """Its first rows, with the questions about them."""
        known = tuple(one for one in self.questions if one.last_row < rows)
        return Session(self.name, self.rows[:rows], known)


@dataclass(frozen=True, slots=True)
class Kept:
    """How many gold values a view holds."""

    values: int
    """All values that were asked for."""
    in_view: int
    near: int
    """Those that stand near words of their question."""


def kept(view: str, questions: Sequence[Asked]) -> Kept:
    """What a view holds of each gold value, one by one; amounts are compared without currency and commas."""
    text = plain_values(view)
    scores = [score(text, one.words, [plain_values(gold)]) for one in questions for gold in one.golds]
    return Kept(len(scores), sum(one.in_view for one in scores), sum(one.near for one in scores))


def airline() -> Session:
    """The recording that comes with the project, asked for the exact values of `benchmarks/probes.json`."""
    probes = [probe for probe in read_probes(PROBES) if probe.exact]
    asked = (Asked(frozenset(telling_words(one.question)), one.exact, one.rows[1] - 1) for one in probes)
    return Session("airline desk", tuple(read_session(RECORDING)), tuple(asked))


def beam_chat(number: int = 1, data: Path = DATA) -> Session:
    """A real conversation of BEAM 100K, asked for the values of its exact questions.

    Raises:
        DataMissingError: it is not fetched.
    """
    return of_chat(beam.load("100K", number, data))


def of_file(path: Path) -> Session:
    """A conversation in a JSON file, in the shape of `benchmarks.real.chats.Chat`.

    Raises:
        DataMissingError: the file is not there, or holds something else.
    """
    try:
        told = json.loads(path.read_text("utf-8"))
        messages = tuple(Message(one["role"], one["content"]) for one in told["messages"])
        asked = tuple(
            Question(one["kind"], one["text"], one["answer"], tuple(one["sources"]), tuple(one["golds"]))
            for one in told["questions"]
        )
        return of_chat(Chat(told["name"], messages, asked))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataMissingError(f"{path} holds no conversation that can be read: {error}") from None


def of_chat(chat: Chat) -> Session:
    """A conversation with the questions that have gold values."""
    asked = (
        Asked(frozenset(telling_words(one.text)), one.golds, max(one.sources))
        for one in chat.questions
        if one.golds and one.sources
    )
    return Session(chat.name, tuple(chat.rows()), tuple(asked))
