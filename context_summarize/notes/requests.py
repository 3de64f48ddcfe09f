"""What the user asked for, and whether it was answered: so that no finished task is taken up again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from context_summarize.notes.own_text import own_text
from context_summarize.notes.patterns import values_in
from context_summarize.notes.sentences import shortened, telling_words
from context_summarize.transcript.rows import RenderedRow, calls_in, may_be_call

_MOST, _MOST_OF_REPLY = 160, 80
"""Characters of a request, and of the newest reply to a question about it, as they are shown."""
_SENTENCE = re.compile(r"(?<=[.!?。！？])[*_\"'”’)]*\s+|\n+")  # noqa: RUF001 - they end sentences
_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t].*\n?")
_ASKS = re.compile(
    r"(?i)[?\uff1f\u061f][*_\"'”’)\]\s]*$|\blet me know (?:what|when|where|which|who|how)\b|\btell me\b"
    r"|\bplease (?!feel free|let me know|reach out|don't hesitate|note)"
)
_ANNOUNCES = re.compile(
    r"(?i)\b(?:I'll|I will|I(?: am|'m) going to|let me(?! know)|next,? I|now I|now let's|(?<!else )I can)\b|:\W*$"
)
_OFFERS = re.compile(
    r"(?is)^(?!.*\bplease\b).*\b(?:anything else|something else|feel free|happy to"
    r"|(?:if|whenever) you(?:'d)? (?:ever )?(?:want|wish|like|need|have|prefer))\b"
)
"""A sentence that offers more asks for nothing."""
_WAITING, _ANSWERED = "Requests of the user, not answered up to here", "Requests that were answered (the user went on)"
_TAIL = 800
"""Characters at the end of an agent's text that are looked at."""


@dataclass(slots=True)
class _Request:
    """One thing that the user asked for."""

    text: str
    number: int
    reply: str = ""
    """The newest reply of the user to a question about it."""

    @property
    def line(self) -> str:
        """How it is told."""
        return f"{self.text} … {self.reply} (#{self.number})" if self.reply else f"{self.text} (#{self.number})"


@dataclass(slots=True)
class Requests:
    """Takes rendered rows in their order; `lines()` tells the requests, the newest first."""

    _found: list[_Request] = field(default_factory=list)
    _answered: int = 0
    """How many of them, the oldest, were answered: the end of a turn answers all that was asked before it."""
    _ended: bool = False
    """The agent has ended a turn since the last message of the user."""
    _is_open: bool = False
    """What it said last asks for something, or announces more."""

    def read(self, row: RenderedRow) -> None:
        """Take in one row."""
        if row.role == "assistant":
            said = "\n".join(line for line in row.text.split("\n") if not may_be_call(line)).strip()
            self._ended = bool(said) and next(calls_in(row.text), None) is None
            self._is_open = _asks_or_announces(said[-_TAIL:]) if said else self._is_open
        elif row.role == "tool":
            self._ended = False
        elif row.role == "user":
            self._read_user(row)

    def _read_user(self, row: RenderedRow) -> None:
        own = own_text(row.said).strip()
        if not own:
            return
        replies = self._ended and self._is_open
        if self._ended and not self._is_open:
            self._answered = len(self._found)
        self._ended, self._is_open = False, False
        asked = _first_telling(own)
        if asked and replies and len(self._found) > self._answered:
            self._found[-1].reply = shortened(asked, _MOST_OF_REPLY)
        elif asked:
            self._found.append(_Request(asked, row.number))

    def lines(self, goes_on: bool) -> Iterator[tuple[str, list[str]]]:
        """(heading, lines, the newest first) of the requests that wait, then of those that were answered.

        Args:
            goes_on: the user wrote again after what has been read.
        """
        answered = len(self._found) if goes_on and self._ended and not self._is_open else self._answered
        yield _WAITING, [one.line for one in reversed(self._found[answered:])]
        yield _ANSWERED, [one.line for one in reversed(self._found[:answered])]


def _asks_or_announces(said: str) -> bool:
    """True where a list at the end, or one of the last two sentences outside of lists, asks or announces.

    Prose that ends within a sentence was broken off.
    """
    line = said.rpartition("\n")[2]
    paragraph = _ITEM.sub("", said).strip().rpartition("\n\n")[2]
    last = [one for one in _SENTENCE.split(paragraph) if one.strip()][-2:]
    is_cut = " " in line and (line[-1].islower() or line[-1] == ",") and not _ITEM.match(line)
    if is_cut or (_ASKS.search(line) and not _OFFERS.search(line)):
        return True
    return any((_ASKS.search(one) or _ANNOUNCES.search(one)) and not _OFFERS.search(one) for one in last)


def _first_telling(text: str) -> str:
    """The first sentence that says something: a few telling words, or a word and an exact value."""
    for sentence in _SENTENCE.split(text):
        flat = " ".join(sentence.split())
        if (
            len(telling_words(flat)) >= 2
            or (" " in flat and values_in(flat))
            or (len(flat) >= 8 and not flat.isascii())
        ):
            return shortened(flat, _MOST)
    return ""
