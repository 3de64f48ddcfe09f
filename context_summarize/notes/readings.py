"""The readings from which the notes are written. Each row is read once, after redaction; the newest are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from context_summarize.config import ToolKind
from context_summarize.notes.calls import Carried, calls_of
from context_summarize.notes.forms import spelled, values_in, without_line_numbers
from context_summarize.notes.own_text import REMOVED, own_text
from context_summarize.notes.prose import around, cut, ends_of, sentences_of, terms_of
from context_summarize.notes.rules import folded, has_sign, sign_pattern
from context_summarize.transcript.rendered import RenderedRow

_MOST = 3_000
"""The newest sentences and calls that are kept."""
_MOST_RULES = 1_000
"""This many older sentences are kept too, if they have the sign of a rule."""
_MOST_LINES = 10_000
"""The newest lines of each kind that are kept."""
_SENTENCE = 400
"""Characters of a quoted sentence."""
_CLOSING = 240
"""Characters of the agent's last words."""
_LINE = 120
"""Characters of a line around a value."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the user."""

    number: int
    """Number of its message."""
    place: int
    """Its number in the message. Where something between two sentences was removed, one number is skipped."""
    text: str
    """The sentence on one line; the middle of a long one is left out."""
    letters: str
    """The letters and digits of the whole sentence; see `folded`."""
    terms: tuple[str, ...]
    values: tuple[str, ...]
    """Its names and figures, in one spelling."""
    has_sign: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a result or of the agent."""

    number: int
    who: str
    text: str


@dataclass(slots=True)
class Readings:
    """The readings of the first rows of a log. Each list has the order of the rows.

    Args:
        tools: kinds by tool name, which override the kind read from the arguments; see the setting `action_tools`.
        signs: words of the prompt set that make a sentence a rule.
    """

    tools: Mapping[str, ToolKind]
    signs: re.Pattern[str]
    said: list[Sentence] = field(default_factory=list)
    calls: list[Carried] = field(default_factory=list)
    ends: dict[int, Line] = field(default_factory=dict)
    """The agent's last words of each turn, by the number of the user's message before them."""
    named_again: dict[str, Line] = field(default_factory=dict)
    """Values that were named again, each with the line that contained it before, the newest use last."""
    unnamed: dict[str, Line] = field(default_factory=dict)
    """Values of results and of the agent's prose that no later text has named, the newest last."""
    gone: int = 0
    """How many of the user's oldest sentences have been dropped."""
    gone_until: int = 0
    """Number of the newest message with a dropped sentence."""
    _asked: int = 0
    """Number of the user's newest message."""

    @classmethod
    def fresh(cls, tools: Mapping[str, ToolKind], signs: Sequence[str]) -> Readings:
        """Returns empty readings."""
        return cls(tools, sign_pattern(signs))

    def until(self, number: int) -> Readings:
        """Returns the readings of the rows up to this number."""
        return replace(
            self,
            said=[one for one in self.said if one.number <= number],
            calls=[call for call in self.calls if call.number <= number],
            ends={asked: line for asked, line in self.ends.items() if line.number <= number},
            named_again={value: line for value, line in self.named_again.items() if line.number <= number},
            unnamed={value: line for value, line in self.unnamed.items() if line.number <= number},
        )

    def values(self, first: int) -> list[str]:
        """Returns the names in calls, and the names and figures of the user, from row `first` on, each once."""
        named = [name for call in self.calls if call.number >= first for name in call.names]
        said = [value for sentence in self.said if sentence.number >= first for value in sentence.values]
        return [*dict.fromkeys([*named, *said])]

    def read(self, rows: Sequence[RenderedRow]) -> None:
        """Reads the rows of the next group. They have the numbers that frames show."""
        calls: dict[int, Carried] = {}
        for row in rows:
            if row.role == "user" and row.own != "":
                self._read_user(row)
            elif row.role == "assistant":
                calls = calls_of(row, self.tools)
                self._read_agent(row, calls)
            elif row.answers in calls:
                calls[row.answers].answer(row.text)
            if row.role == "tool" or row.own == "":  # a result, or a user row without the user's own words
                who = row.name or ("a tool" if row.role == "tool" else "not the user")
                self._see(row.number, who, without_line_numbers(row.text))
        self._drop_oldest()

    def _read_user(self, row: RenderedRow) -> None:
        self._asked = row.number
        own = own_text(row.said)
        self._use(own)
        place = 0
        for part in own.split(REMOVED):
            for text in sentences_of(part):
                place += 1
                if any(map(str.isalnum, text)):
                    quoted = cut(text, _SENTENCE)
                    sentence = Sentence(
                        number=row.number,
                        place=place,
                        text=quoted,
                        letters=folded(text),
                        terms=terms_of(text),
                        values=tuple(map(spelled, values_in(quoted))),
                        has_sign=has_sign(self.signs, text),
                    )
                    self.said.append(sentence)
            place += 1

    def _read_agent(self, row: RenderedRow, calls: Mapping[int, Carried]) -> None:
        said = row.prose
        if row.calls:  # the turn goes on, so what was said before is not its end
            self.ends.pop(self._asked, None)
        elif self._asked:
            self.ends[self._asked] = Line(row.number, "the agent", cut(said, _CLOSING))
        self._use(said)
        for call in calls.values():
            self._use(call.short)
            self.calls.append(call)
        self._see(row.number, "the agent", said)

    def _see(self, number: int, who: str, text: str) -> None:
        """Remembers the values of a text, each with the line around it."""
        text = ends_of(text)
        for value, at in values_in(text).items():
            self.unnamed.pop(value, None)
            self.unnamed[value] = Line(number, who, around(text, at, at + len(value), _LINE))

    def _use(self, text: str) -> None:
        """Moves the values that this text names from `unnamed` to `named_again`."""
        for value in values_in(text):
            if line := self.unnamed.pop(value, None):
                self.named_again.pop(value, None)
                self.named_again[value] = line

    def _drop_oldest(self) -> None:
        """Drops the oldest readings when there are too many. The user's sentences with a sign stay longer."""
        if len(self.said) > 2 * _MOST:
            old, new = self.said[:-_MOST], self.said[-_MOST:]
            rules = [sentence for sentence in old if sentence.has_sign][-_MOST_RULES:]
            self.gone += len(old) - len(rules)
            self.gone_until = old[-1].number
            self.said = rules + new
        if len(self.calls) > 2 * _MOST:
            del self.calls[:-_MOST]
        for found in (self.ends, self.named_again, self.unnamed):
            if len(found) > 2 * _MOST_LINES:
                for key in [*found][:-_MOST_LINES]:
                    del found[key]
