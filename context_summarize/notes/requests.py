"""What the user asked for, and whether it was answered: so that no finished task is taken up again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from context_summarize.notes.own_text import own_lines
from context_summarize.notes.patterns import values_in
from context_summarize.notes.sentences import shortened, telling_words
from context_summarize.transcript.calls import calls_in, may_be_call
from context_summarize.transcript.rows import RenderedRow

_MOST = 160
"""Characters of a request as it is shown."""
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")  # noqa: RUF001 - they end sentences
_ASKS = re.compile(r"[?\uff1f]")
_ANNOUNCES = re.compile(
    r"(?i)\b(?:I(?:'ll| will| am going to|'m going to)|let me|next,? I|now I|shall I|would you like|do you want)\b"
    r"|:\s*$"
)
_TAIL = 400
"""Characters at the end of an agent's answer that are looked at."""


@dataclass(slots=True)
class _Request:
    """One thing that the user asked for."""

    text: str
    number: int
    answered: bool = False


@dataclass(slots=True)
class Requests:
    """Takes rendered rows in their order; `lines()` tells the requests, the newest first."""

    _found: list[_Request] = field(default_factory=list)
    _ended: bool = True
    """The agent has ended a turn since the last message of the user."""
    _open_end: bool = False
    """What it said last asks for something, or announces more."""

    def read(self, row: RenderedRow) -> None:
        """Take in one row."""
        if row.role == "assistant":
            self._ended = next(calls_in(row.text), None) is None
            said = "\n".join(line for line in row.text.split("\n") if not may_be_call(line)).strip()
            if said:
                self._open_end = bool(_ASKS.search(said[-_TAIL:]) or _ANNOUNCES.search(said[-_TAIL:]))
        elif row.role == "tool":
            self._ended = False
        elif row.role == "user":
            self._read_user(row)

    def _read_user(self, row: RenderedRow) -> None:
        own = "\n".join(own_lines(row.text if row.own is None else row.own))
        asked = _first_telling(own)
        if not asked:
            return
        interrupts, replies = not self._ended, self._open_end
        self._ended, self._open_end = False, False
        if replies and self._found and not interrupts:
            return  # it belongs to the request that was asked about
        if not interrupts:
            for one in self._found:
                one.answered = True
        self._found.append(_Request(asked, row.number))

    def lines(self) -> Iterator[str]:
        """A line a request, the newest first; the newest one is never told as answered."""
        for one in reversed(self._found):
            state = "Answered (the user went on)" if one.answered else "Not answered yet"
            yield f"{state}: {one.text} (#{one.number})"


def _first_telling(text: str) -> str:
    """The first sentence that says something: a few telling words, or an exact value."""
    for sentence in _SENTENCE.split(text):
        flat = " ".join(sentence.split())
        if len(telling_words(flat)) >= 2 or values_in(flat) or (len(flat) >= 8 and not flat.isascii()):
            return shortened(flat, _MOST)
    return ""
