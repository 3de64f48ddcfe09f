"""What notes are written from: it is read row by row, once, after redaction, and grows at its end only."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from context_summarize.config import ToolKind
from context_summarize.notes.calls import LINE, READ, Carried, calls_of, telling_line
from context_summarize.notes.forms import names_in, spelled, values_in, without_line_numbers
from context_summarize.notes.own_text import REMOVED, own_text
from context_summarize.notes.prose import around, clauses_of, cut, ends_of, flat, has_digit, sentences_of, terms_of
from context_summarize.notes.rules import has_sign, sign_pattern
from context_summarize.transcript.rendered import RenderedRow, may_be_call

_MOST, _MOST_SEEN = 3_000, 10_000
"""The newest of each kind that are kept; of values that nobody has named again."""
_SHORT_ARGUMENT, _SHORT_RESULT, _CLOSING = 300, 100, 240
"""Characters of an argument that names are read from, of a result that is quoted whole, of the agent's last words."""
_FIGURE = 3
"""What a term with a digit counts beside its place among the terms of a sentence."""
_MOST_PLACES = 20
"""Places of a value in a text that are looked at."""


@dataclass(slots=True)
class Sentence:
    """One sentence of the user's."""

    text: str
    terms: tuple[str, ...]
    has_sign: bool
    follows: bool
    """True where nothing stands between it and the sentence before it in its message."""
    begins: bool = True
    """False for later clauses of a long sentence, which say little, or the opposite, without its first ones."""
    tokens: int = 0
    """Counted when it is first weighed."""
    letters: str = ""
    """See `folded`; filled when a summary's rule is first looked up in it."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the user: its number, and its own sentences by their places in it."""

    number: int
    sentences: Mapping[int, Sentence]
    count: int
    """How many it had; some may have been let go of."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """A text, the number of the message that it stands in, and what says whose it is."""

    number: int
    text: str
    source: str = ""
    """A path, a command, or who wrote the text."""


@dataclass(frozen=True, slots=True)
class Used:
    """A line that holds a value which row `number` named again."""

    number: int
    value: str
    line: Quotation


@dataclass(slots=True)
class Readings:
    """All that has been read of the rows up to one, each list in the order of the rows.

    Args:
        tools: kinds by tool name that come before what is read from the arguments; see the setting `action_tools`.
        signs: words of the prompt set that make a sentence a rule.
    """

    tools: Mapping[str, ToolKind]
    signs: re.Pattern[str]
    said: list[Said] = field(default_factory=list)
    ends: list[Quotation] = field(default_factory=list)
    """The agent's words where it called nothing; "" for a row with calls."""
    written: list[Quotation] = field(default_factory=list)
    """Paths that calls carried content to, each with the call's number and its result, "" for a long one."""
    runs: list[Quotation] = field(default_factory=list)
    """Commands, each with the line of its result that counts or names errors."""
    named: list[Quotation] = field(default_factory=list)
    """Names in short arguments."""
    used: list[Used] = field(default_factory=list)
    _sentences: int = 0
    """How many sentences of the user are kept."""
    _seen: dict[str, Quotation] = field(default_factory=dict)
    """Values of results and of the agent's prose that nobody has named since, the newest last."""

    @classmethod
    def fresh(cls, tools: Mapping[str, ToolKind], signs: Sequence[str]) -> Readings:
        """Returns readings of no row."""
        return cls(tools, sign_pattern(signs))

    def until(self, number: int) -> Readings:
        """Returns what was read of the rows up to this number."""
        return replace(
            self,
            said=_until(self.said, number),
            ends=_until(self.ends, number),
            written=_until(self.written, number),
            runs=_until(self.runs, number),
            named=_until(self.named, number),
            used=_until(self.used, number),
        )

    def values(self, first: int) -> list[str]:
        """Returns the names in calls, and the names and figures in the user's words, from row `first` on, each once."""
        named = [one.text for one in self.named if one.number >= first]
        said = "\n".join(told.text for one in self.said if one.number >= first for told in one.sentences.values())
        return [*dict.fromkeys([*named, *map(spelled, values_in(said))])]

    def line(self, value: str) -> Quotation | None:
        """Returns the newest line of a result, or of the agent's, that holds a value; None where none is kept."""
        return self._seen.get(value)

    def forget_from(self, number: int) -> None:
        """Lets go of what was read of this row and of later ones."""
        for found in (self.said, self.ends, self.written, self.runs, self.named, self.used):
            del found[bisect_right(found, number - 1, key=lambda one: one.number) :]
        self._seen = {value: line for value, line in self._seen.items() if line.number < number}
        self._sentences = sum(len(one.sentences) for one in self.said)

    def read(self, rows: Sequence[RenderedRow]) -> None:
        """Takes in the rows of the next group, numbered as frames count."""
        calls: dict[int, Carried] = {}
        for row in rows:
            if row.role == "user" and row.own != "":
                self._read_user(row)
            elif row.role == "assistant":
                self._read_unanswered(calls)
                calls = calls_of(row, self.tools)
                self._read_agent(row)
            elif row.answers in calls:
                self._read_call(calls.pop(row.answers), row.text)
            if row.role == "tool" or row.own == "":
                who = row.name or ("a tool" if row.role == "tool" else "not the user")
                self._see(row.number, who, ends_of(without_line_numbers(row.text), READ))
        self._read_unanswered(calls)
        for found in (self.ends, self.written, self.runs, self.named, self.used):
            del found[: len(found) - _MOST if len(found) > _MOST * 5 // 4 else 0]

    # --- the user and the agent ---------------------------------------------------------------------------------------

    def _read_user(self, row: RenderedRow) -> None:
        own = own_text(row.said)
        pieces = [
            (text, place > 0 or start > 0, place == 0)
            for part in own.split(REMOVED)
            for start, end in sentences_of(part)
            for place, text in enumerate(clauses_of(part[start:end]))
        ]
        found = {
            at: Sentence(text, terms_of(text), has_sign(self.signs, text), follows, begins)
            for at, (text, follows, begins) in enumerate(pieces)
            if any(map(str.isalnum, text))
        }
        self._use(row.number, own)
        self.said.append(Said(row.number, found, len(found)))
        self._sentences += len(found)
        if self._sentences > _MOST * 3 // 2:
            self.said, self._sentences = _without_least(self.said), _MOST

    def _read_agent(self, row: RenderedRow) -> None:
        said = "\n".join(line for line in row.text.split("\n") if not may_be_call(line))
        if not row.calls or (self.ends and self.ends[-1].text):
            self.ends.append(Quotation(row.number, "" if row.calls else cut(said, _CLOSING)))
        self._use(row.number, said)
        self._see(row.number, "the agent", ends_of(said, READ))

    # --- calls and results --------------------------------------------------------------------------------------------

    def _read_unanswered(self, calls: Mapping[int, Carried]) -> None:
        for call in calls.values():
            self._read_call(call, None)

    def _read_call(self, call: Carried, result: str | None) -> None:
        """Takes in a call; `result` is None where it is not read."""
        short = "\n".join(text for text in call.texts if len(text) <= _SHORT_ARGUMENT)
        self.named += [Quotation(call.number, one) for one in dict.fromkeys(map(spelled, names_in(short)))]
        outcome = flat(result or "")
        told = outcome if len(outcome) <= _SHORT_RESULT else ""
        self.written += [Quotation(call.number, told, path) for path in map(spelled, call.paths)]
        if call.command:
            self.runs.append(Quotation(call.number, telling_line(result or ""), call.command))
        self._use(call.number, short)

    # --- values that are named again ----------------------------------------------------------------------------------

    def _see(self, number: int, who: str, text: str) -> None:
        """Remembers the values of a text, each with the line around it."""
        for value in values_in(text):
            at = _place(text, value)
            self._seen.pop(value, None)
            self._seen[value] = Quotation(number, around(text, at, at + len(value), LINE), who)
        if len(self._seen) > _MOST_SEEN * 5 // 4:
            self._seen = dict([*self._seen.items()][-_MOST_SEEN:])

    def _use(self, number: int, text: str) -> None:
        """Notes which of the values that were seen this text names."""
        for value in values_in(text):
            line = self._seen.get(value)
            if line is not None and line.number < number:
                self.used.append(Used(number, value, self._seen.pop(value)))


def _place(text: str, value: str) -> int:
    """Returns where a value stands in a text, if possible as no part of a longer one."""
    first = at = max(0, text.find(value))
    for _ in range(_MOST_PLACES):
        if not (text[at - 1 : at].isalnum() or text[at + len(value) : at + len(value) + 1].isalnum()):
            return at
        at = text.find(value, at + 1)
        if at < 0:
            break
    return first


def _until(found: Sequence[Any], number: int) -> list[Any]:
    return [*found[: bisect_right(found, number, key=lambda one: one.number)]]


def _without_least(said: Sequence[Said]) -> list[Said]:
    """Returns the messages without the sentences that say least; those with a sign stay longest."""
    places = [(at, place) for at, one in enumerate(said) for place in one.sentences]
    worth = {(at, place): _marks(said[at].sentences[place]) for at, place in places}
    kept = {*sorted(places, key=lambda place: (worth[place], place))[-_MOST:]}
    return [
        Said(one.number, {place: told for place, told in one.sentences.items() if (at, place) in kept}, one.count)
        for at, one in enumerate(said)
    ]


def _marks(sentence: Sentence) -> tuple[bool, int]:
    return sentence.has_sign, len(sentence.terms) + _FIGURE * sum(map(has_digit, sentence.terms))
