"""What the user asked for, each with the agent's last words about it: so that no finished task is taken up again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from context_summarize.notes.own_text import own_text
from context_summarize.notes.patterns import values_in
from context_summarize.notes.sentences import ends_of, sentences_of, shortened, words_of
from context_summarize.transcript.rows import RenderedRow, calls_in, may_be_call

_MOST, _MOST_OF_REPLY = 160, 100
"""Characters of a request, and of what the agent said to it, as they are shown."""
_WAITING = "Requests of the user since the agent last ended its turn, newest first:\n"
_ANSWERED = "Earlier requests, newest first → what the agent said when it ended its turn:\n"


@dataclass(slots=True)
class Requests:
    """Takes rendered rows in their order; `lines()` tells the requests, the newest first.

    Whether a turn has done what was asked is for the reader to judge, in any language: code tells its last words alone.
    """

    _waiting: list[str] = field(default_factory=list)
    _answered: list[str] = field(default_factory=list)
    _last_words: str = ""
    """What the agent said when it ended its turn; "" where the user has spoken since, or it works on."""

    def read(self, row: RenderedRow) -> None:
        """Take in one row."""
        if row.role == "assistant":
            said = " ".join(line for line in row.text.split("\n") if not may_be_call(line))
            self._last_words = "" if next(calls_in(row.text), None) else ends_of(said, _MOST_OF_REPLY)
        elif row.role == "tool":
            self._last_words = ""
        elif asked := _first_telling(own_text(row.said)):
            self._waiting, self._answered = self._lines(goes_on=True)
            self._last_words = ""
            self._waiting.append(f"{asked} (#{row.number})")

    def lines(self, goes_on: bool) -> Iterator[tuple[str, list[str]]]:
        """(heading, lines, the newest first) of the requests that wait, then of those that were answered.

        Args:
            goes_on: the user wrote again after what has been read.
        """
        waiting, answered = self._lines(goes_on)
        yield _WAITING, waiting[::-1]
        yield _ANSWERED, answered[::-1]

    def _lines(self, goes_on: bool) -> tuple[list[str], list[str]]:
        """Those that wait and those that were answered: a turn that ended answers the newest one before it."""
        if not (goes_on and self._last_words and self._waiting):
            return self._waiting, self._answered
        return [], [*self._answered, *self._waiting[:-1], f"{self._waiting[-1]} → {self._last_words}"]


def _first_telling(text: str) -> str:
    """The first sentence that says something: a few words, or a word and an exact value."""
    for start, end in sentences_of(text):
        flat = " ".join(text[start:end].split())
        if len(words_of(flat)) >= 2 or (" " in flat and values_in(flat)) or (len(flat) >= 8 and not flat.isascii()):
            return shortened(flat, _MOST)
    return ""
