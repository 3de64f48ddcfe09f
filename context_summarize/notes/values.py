"""The exact values of a history and the sentences that say most: read row by row, each with what tells its worth."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field

from context_summarize.notes.leaves import MOST_READ, leaves
from context_summarize.notes.patterns import Kind, classify, pairs_in, unescaped, values_in
from context_summarize.notes.sentences import marks_of, pieces_of, telling_words
from context_summarize.tokens.measure import Count
from context_summarize.transcript.rows import RenderedRow, calls_in

MOST = 10_000
"""Values, and as many sentences, that are kept as candidates."""
_RAREST, _MARK = 12, 2.0
"""Words of a sentence that are weighed; what a name, a figure or a word of time counts beside a rare word."""
_LABELLED: Container[Kind] = ("id", "figure", "url")
"""Kinds that say nothing without words beside them."""
_PAIRED: Container[Kind] = ("id", "figure", "term")
"""Kinds that may follow a label in a text."""
_WORDS = re.compile(r"(?<!\w)[^\W\d_][^\W\d_'’-]*(?!\w)")
_BESIDE = 40
"""Characters before a value among which its words are looked for."""


@dataclass(slots=True, eq=False)
class Value:
    """One exact value, and where it has been seen."""

    text: str
    kind: Kind
    tokens: int
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
    values: tuple[str, ...]
    words: Collection[str]
    """Its rarest words, as far as was known when it was read."""
    marks: float
    """What its names, figures and words of time say, where a word that no other row has says 1."""
    tokens: int = 0
    """Counted when it is first weighed."""


@dataclass(slots=True)
class Candidates:
    """What notes are chosen from. Rows are read once, in their order."""

    count: Count
    values: dict[str, Value] = field(default_factory=dict)
    sentences: list[Sentence] = field(default_factory=list)
    word_rows: Counter[str] = field(default_factory=Counter)
    """In how many rows a word stands."""
    label_rows: Counter[str] = field(default_factory=Counter)
    """In how many rows a label names something."""
    rows: int = 0
    """Number of the newest row."""
    _objects: dict[str, dict[str, str]] = field(default_factory=dict)
    """What was read last of each object with an identity: its values by label."""

    def read(self, rows: Iterable[RenderedRow]) -> None:
        """Take in the next rows."""
        for row in rows:
            self.rows = row.number
            called: set[str] = set()
            plain = unescaped(row.text[:MOST_READ])
            if row.role == "tool":
                seen = self._read_data(row.text) | self._read_result(plain)
            else:
                for _, arguments in calls_in(row.text) if row.role == "assistant" else ():
                    called |= self._read_data(arguments) | self._read_result(unescaped(arguments[:MOST_READ]))
                seen = self._read_prose(row.said)
            seen |= self._read_pairs(plain)
            self._see(seen, called, row)
        if len(self.values) > MOST * 5 // 4:
            self._forget_values()
        if len(self.sentences) > MOST * 5 // 4:
            self.sentences = sorted(self.sentences, key=lambda one: (one.marks, one.number))[-MOST:]

    def mention(self, summaries: str) -> None:
        """Take in what a model's summaries tell: what a model chose is worth keeping where a merge drops it."""
        exact = values_in(summaries)
        for value in self.values.values():
            if not value.told and (value.text in exact or (value.kind == "term" and value.text in summaries)):
                value.told = True

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read_prose(self, text: str) -> set[str]:
        """What users and agents say, sentence by sentence."""
        seen: set[str] = set()
        words: set[str] = set()
        for piece in pieces_of(text):
            found = values_in(piece)
            new = [(value, kind) for value, kind in found.items() if value not in self.values]
            weighed = self._weighed(piece) if any(kind in _LABELLED for _, kind in new) else []
            for value, kind in new:
                self._add(value, kind, label=_words_of(weighed, piece, value) if kind in _LABELLED else "")
            telling = telling_words(piece)
            if len(telling) > 2:
                exact = tuple(value for value, kind in found.items() if kind in _LABELLED)
                marks = _MARK * math.log2(1 + marks_of(piece, telling))
                self.sentences.append(Sentence(piece, self.rows, exact, self._rarest(telling), marks))
            words |= telling
            seen.update(found)
        self.word_rows.update(words)
        return seen

    def _read_result(self, text: str) -> set[str]:
        found = values_in(text)
        for value, kind in found.items():
            if value not in self.values:
                self._add(value, kind, label=_words_before(text, value) if kind in _LABELLED else "")
        return set(found)

    def _read_data(self, text: str) -> set[str]:
        """The values of JSON with the key and the object of each."""
        seen: set[str] = set()
        objects: dict[str, dict[str, str]] = {}
        for leaf in leaves(text):
            found = classify(leaf.value)
            if len(found) == 1 and len(found[0][0]) == len(leaf.value):
                self._add(leaf.value, found[0][1], leaf.about, leaf.label)
                seen.add(leaf.value)
            if leaf.about and leaf.label:
                objects.setdefault(leaf.about, {})[leaf.label] = leaf.value
        for about, now in objects.items():
            self._replace(about, self._objects.pop(about, {}), now, seen)
            self._objects[about] = now
        while len(self._objects) > MOST:
            del self._objects[next(iter(self._objects))]
        return seen

    def _replace(self, about: str, before: dict[str, str], now: dict[str, str], seen: set[str]) -> None:
        """Forget a value that a later one of the same label replaced, where nothing else of the object differs.

        What another object of the same text holds (`seen`) stays.
        """
        changed = [label for label in before.keys() | now.keys() if before.get(label) != now.get(label)]
        old = self.values.get(before.get(changed[0], "")) if len(changed) == 1 and before else None
        if old is not None and old.text not in seen and (old.about, old.label) == (about, changed[0]):
            del self.values[old.text]

    def _read_pairs(self, text: str) -> set[str]:
        """What a text itself says that it is."""
        seen: set[str] = set()
        labels: set[str] = set()
        for label, value in pairs_in(text):
            labels.add(label)
            found = classify(value)
            kind: Kind = found[0][1] if found and found[0][0] == value else "term"
            if value and kind in _PAIRED:
                self._add(value, kind)
                self.values[value].label, self.values[value].named = label, True
                seen.add(value)
        self.label_rows.update(labels)
        return seen

    def _rarest(self, words: Collection[str]) -> Collection[str]:
        if len(words) <= _RAREST:
            return words
        return sorted(words, key=lambda word: (self.word_rows.get(word, 0), word))[:_RAREST]

    # --- bookkeeping -------------------------------------------------------------------------------------------------

    def _add(self, text: str, kind: Kind, about: str = "", label: str = "") -> None:
        found = self.values.get(text)
        if found is None:
            self.values[text] = Value(text, kind, self.count(text) + 1, about, label)
        elif label and (not found.label or (about and not found.about)):
            found.about, found.label = about, label

    def _see(self, seen: set[str], called: set[str], row: RenderedRow) -> None:
        for value in seen | called:
            found = self.values[value]
            found.rows += 1
            found.last = self.rows
            found.calls += value in called
            found.said += row.role != "tool" and value not in called
            found.by_user |= row.role == "user" and row.own != ""

    def _forget_values(self) -> None:
        """Drop those that nobody used and that were seen longest ago."""
        ranked = sorted(self.values.values(), key=lambda one: (one.calls + one.said + one.told, one.rows, one.last))
        for one in ranked[: len(ranked) - MOST]:
            del self.values[one.text]

    def _weighed(self, piece: str) -> list[tuple[str, int]]:
        """The words of a sentence that say something, each with the number of rows in which it stands."""
        telling = ((word, telling_words(word)) for word in piece.split())
        return [(word, max(self.word_rows[part] for part in parts)) for word, parts in telling if parts]


def _words_of(weighed: Sequence[tuple[str, int]], piece: str, value: str) -> str:
    """Words of a sentence that say what a value is: the two rarest ones, and those right before it."""
    others = [(word, rows) for word, rows in weighed if word != value]
    rare = [word for word, _ in sorted(others, key=lambda one: one[1])[:2]]
    before = _words_before(piece, value).split()[-2:]
    return " ".join(dict.fromkeys(word for word, _ in others if word in rare or word in before))


def _words_before(text: str, value: str) -> str:
    """The last few words before a value on its line."""
    at = text.find(value)
    line = text[max(0, at - _BESIDE) : at].rpartition("\n")[2].partition(" ")[2]
    return " ".join(_WORDS.findall(line)[-3:])
