"""The exact values of a history and the sentences that say most: read row by row, each with what tells its worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from context_summarize.notes.leaves import MOST_READ, is_data, leaves
from context_summarize.notes.patterns import Kind, classify, pairs_in, values_in
from context_summarize.notes.sentences import marks_of, pieces_of, telling_words
from context_summarize.tokens.measure import Count
from context_summarize.transcript.calls import calls_in
from context_summarize.transcript.rows import RenderedRow

MOST = 20_000
"""Values, and sentences, that are kept as candidates."""
_BESIDE = 40
"""Characters before a value in a tool's text among which its words are looked for."""


@dataclass(slots=True, eq=False)
class Value:
    """One exact value, and where it has been seen."""

    text: str
    kind: Kind
    tokens: int
    first: int
    """Number of the row that showed it first."""
    about: str = ""
    """Identity of the object that holds it."""
    label: str = ""
    """Words that say what it is."""
    last: int = 0
    rows: int = 0
    calls: int = 0
    """Rows in which the agent used it in a call."""
    said: int = 0
    """Rows in which the agent or the user wrote it."""
    by_user: bool = False
    named: bool = False
    """A text says what it is: `label: value`."""
    told: bool = False
    """A model's summary told it."""


@dataclass(slots=True, eq=False)
class Sentence:
    """A piece of what the user or the agent wrote."""

    text: str
    number: int
    by_user: bool
    tokens: int
    values: tuple[str, ...]
    words: frozenset[str]
    marks: int
    """Names, figures and words of time."""


@dataclass(slots=True)
class Candidates:
    """What notes are chosen from. Rows are read once, in their order."""

    count: Count
    values: dict[str, Value] = field(default_factory=dict)
    sentences: list[Sentence] = field(default_factory=list)
    word_rows: Counter[str] = field(default_factory=Counter)
    """In how many rows a word stands."""
    rows: int = 0
    """Number of the newest row."""
    label_rows: Counter[str] = field(default_factory=Counter)
    """In how many rows a label names something."""

    def read(self, rows: Iterable[RenderedRow]) -> None:
        """Take in the next rows."""
        for row in rows:
            self.rows = row.number
            if row.role == "tool":
                self._read_result(row)
            else:
                self._read_said(row)
        if len(self.values) > MOST * 5 // 4:
            self._forget_values()
        if len(self.sentences) > MOST * 5 // 4:
            del self.sentences[: len(self.sentences) - MOST]

    def mention(self, summary: str) -> None:
        """Take in what a model's summary tells: what a model finds worth telling is worth keeping when a merge drops it."""
        exact = values_in(summary)
        for value in self.values.values():
            if not value.told and (value.text in exact or (value.kind == "term" and value.text in summary)):
                value.told = True

    # --- what users and agents say -----------------------------------------------------------------------------------

    def _read_said(self, row: RenderedRow) -> None:
        by_user = row.role == "user"
        called: set[str] = set()
        if row.role == "assistant":
            for _, arguments in calls_in(row.text):
                called |= self._read_data(arguments, row.number)
        seen: set[str] = set()
        words: set[str] = set()
        for piece in pieces_of(row.text if row.own is None else row.own):
            found = values_in(piece)
            for value, kind in found.items():
                if value not in self.values:
                    told = self._rare_words(piece, value) if kind in ("id", "figure") else ""
                    self._add(value, kind, row.number, label=told)
            telling = telling_words(piece)
            words |= telling
            seen.update(found)
            exact = tuple(value for value, kind in found.items() if kind not in ("name", "path"))
            if len(telling) > 2:
                self.sentences.append(Sentence(piece, row.number, by_user, self.count(piece) + 4, exact, telling, marks_of(piece)))
        seen |= self._read_pairs(row.text, row.number)
        self.word_rows.update(words)
        self._see(seen | called, row.number)
        for value in called:
            self.values[value].calls += 1
        for value in seen - called:
            self.values[value].said += 1
            self.values[value].by_user |= by_user

    def _rare_words(self, piece, value):
        before = _words_before(piece, value).split()
        words = [w for w in piece.split() if telling_words(w) and w != value]
        rare = sorted(words, key=lambda w: sum(self.word_rows[x] for x in telling_words(w)))[:2]
        keep = [w for w in words if w in rare or w in before[-2:]]
        return " ".join(dict.fromkeys(keep))

    # --- what tools return -------------------------------------------------------------------------------------------

    def _read_result(self, row: RenderedRow) -> None:
        if is_data(row.text):
            seen = self._read_data(row.text, row.number)
            self._see(seen | self._read_pairs(row.text, row.number), row.number)
            return
        text = row.text[:MOST_READ]
        found = values_in(text)
        for value, kind in found.items():
            if value not in self.values:
                self._add(value, kind, row.number, label=_words_before(text, value) if kind in ("id", "figure") else "")
        self._see(set(found) | self._read_pairs(text, row.number), row.number)

    def _read_data(self, text: str, number: int) -> set[str]:
        """The values of JSON; those of its longer texts have no key."""
        seen: set[str] = set()
        for leaf in leaves(text):
            found = classify(leaf.value)
            if len(found) == 1 and len(found[0][0]) == len(leaf.value):
                self._add(leaf.value, found[0][1], number, leaf.about, leaf.label)
                seen.add(leaf.value)
        for value, kind in values_in(text[:MOST_READ]).items():
            self._add(value, kind, number)
            seen.add(value)
        return seen

    def _read_pairs(self, text: str, number: int) -> set[str]:
        """What a text itself says that it is."""
        seen: set[str] = set()
        labels: set[str] = set()
        for label, value in pairs_in(text[:MOST_READ]):
            labels.add(label)
            found = classify(value)
            kind: Kind = found[0][1] if found and found[0][0] == value else "term"
            if value and kind in ("id", "figure", "term"):
                self._add(value, kind, number)
                one = self.values[value]
                one.label, one.named = label, True
                seen.add(value)
        self.label_rows.update(labels)
        return seen

    # --- bookkeeping -------------------------------------------------------------------------------------------------

    def _add(self, text: str, kind: Kind, number: int, about: str = "", label: str = "") -> None:
        found = self.values.get(text)
        if found is None:
            self.values[text] = Value(text, kind, self.count(text) + 1, number, about, label)
        elif label and not found.label:
            found.about, found.label = about, label

    def _see(self, seen: set[str], number: int) -> None:
        for value in seen:
            found = self.values[value]
            found.rows += 1
            found.last = number

    def _forget_values(self) -> None:
        """Drop those that nobody used and that were seen longest ago."""
        ranked = sorted(self.values.values(), key=lambda one: (one.calls + one.said, one.rows, one.last))
        for one in ranked[: len(ranked) - MOST]:
            del self.values[one.text]


def _words_before(text: str, value: str) -> str:
    """The last few words before a value on its line."""
    at = text.find(value)
    line = text[max(0, at - _BESIDE) : at].rpartition("\n")[2]
    return " ".join(line.strip(" \t=:|-#\"'([{<").split()[-4:])
