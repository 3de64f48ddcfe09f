"""The exact values of a history and the sentences that say most: read row by row, each with what tells its worth."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from context_summarize.notes.patterns import (
    Kind,
    classify,
    labels_in,
    leaves,
    names_secret,
    pairs_in,
    unescaped,
    values_in,
)
from context_summarize.notes.sentences import ends, pieces_of, shortened, words_of
from context_summarize.transcript.rows import RenderedRow, calls_in

MOST = 10_000
"""Values, and as many sentences, that are kept as candidates."""
_MARK = 2.0
"""What a name or a figure of a sentence counts beside a word that no other row has."""
_LEAST_WORDS = 4
"""A sentence of no more words says little."""
_LABELLED: Container[Kind] = ("id", "figure", "url")
"""Kinds that say nothing without words beside them."""
_PAIRED: Container[Kind] = ("id", "figure", "term")
"""Kinds that may follow a label in a text."""
_EXAMPLE = 80
"""Characters of a value that is named as an example."""
_BARE = re.compile(r"[\d.,]+")
"""A figure without a unit."""
_BESIDE = 80
"""Characters before a value among which the words that say what it is are looked for."""


@dataclass(slots=True, eq=False)
class Value:
    """One exact value, and where it has been seen."""

    text: str
    kind: Kind
    about: str = ""
    """Identity of the object that holds it."""
    label: str = ""
    """Words that say what it is."""
    before: str = ""
    """Where there is no label: what stands before it on its line."""
    last: int = 0
    rows: int = 0
    calls: int = 0
    """Rows in which the agent used it in a call."""
    said: int = 0
    """Rows in which the agent or the user wrote it."""
    by_user: bool = False
    named: bool = False
    """A text says what it is: `label: value`."""
    is_secret: bool = False
    """Where it was first seen, or by its label, a word such as "password" names it: it is written nowhere."""
    told: bool = False
    """A model's summary told it."""
    tokens: int = 0
    """Counted when it is first weighed; so are those of a sentence."""


@dataclass(slots=True, eq=False)
class Sentence:
    """A piece of what the user or the agent wrote."""

    text: str
    number: int
    values: tuple[str, ...]
    words: tuple[str, ...]
    """Each once."""
    marks: float
    """What its names and figures say, where a word that no other row has says 1."""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a view still holds of the exact values of some rows."""

    kept: int = 0
    """Distinct values: identifiers, paths, addresses, names of code, dates, and figures with a unit."""
    lost: int = 0
    examples: tuple[str, ...] = ()
    """Of those that are lost, up to three: what the user said and the agent used comes first."""


@dataclass(slots=True)
class Candidates:
    """What notes are chosen from. Rows are read once, in their order."""

    values: dict[str, Value] = field(default_factory=dict)
    sentences: list[Sentence] = field(default_factory=list)
    word_rows: Counter[str] = field(default_factory=Counter)
    """In how many rows a word stands."""
    label_rows: Counter[str] = field(default_factory=Counter)
    """In how many rows a label names something."""
    rows: int = 0
    """Number of the newest row."""

    def read(self, row: RenderedRow) -> None:
        """Take in the next row."""
        self.rows = row.number
        called: set[str] = set()
        if row.role == "tool":
            seen = self._read_data(row.text)
        else:
            for _, arguments in calls_in(row.text) if row.role == "assistant" else ():
                called |= self._read_data(arguments)
            seen = self._read_prose(row.said)
        seen |= self._read_pairs(unescaped(ends(row.text)))
        for value in seen | called:
            found = self.values[value]
            found.rows += 1
            found.last = self.rows
            found.calls += value in called
            found.said += row.role != "tool" and value not in called
            found.by_user |= row.role == "user" and row.own != ""
        self._forget()

    def mention(self, summaries: str) -> None:
        """Take in what a model's summaries tell: what a model chose is worth keeping where a merge drops it."""
        exact = values_in(summaries)
        for value in self.values.values():
            value.told |= value.text in exact or (value.kind == "term" and value.text in summaries)

    def kept(self, first: int, last: int, shown: str) -> Kept:
        """What a text holds of the values that were seen in these rows, and in none after them."""
        exact = values_in(shown)
        seen = [one for one in self.values.values() if first <= one.last <= last and _is_telling(one)]
        lost = [one for one in seen if one.text not in exact]
        ranked = sorted(lost, key=lambda one: (one.by_user, one.calls, one.said, one.last), reverse=True)
        return Kept(len(seen) - len(lost), len(lost), tuple(shortened(one.text, _EXAMPLE) for one in ranked[:3]))

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read_prose(self, text: str) -> set[str]:
        """What users and agents say, sentence by sentence."""
        seen: set[str] = set()
        words: set[str] = set()
        for piece in pieces_of(text):
            found = values_in(piece)
            for value, kind in found.items():
                self._add(value, kind, text=piece)
            telling = words_of(piece)
            if len(telling) > _LEAST_WORDS:
                exact = tuple(value for value, kind in found.items() if kind in _LABELLED)
                marks = _MARK * math.log2(1 + sum(telling.values()))
                self.sentences.append(Sentence(piece, self.rows, exact, tuple(telling), marks))
            words |= telling.keys()
            seen.update(found)
        self.word_rows.update(words)
        return seen

    def _read_data(self, text: str) -> set[str]:
        """The values of a result or of arguments; those of JSON with the key and the object of each."""
        plain = unescaped(text[:40_000])
        labels = labels_in(plain)
        found = {value: kind for value, kind in values_in(plain).items() if value not in labels}
        for leaf in leaves(text):
            kinds = classify(leaf.value)
            if len(kinds) == 1 and len(kinds[0][0]) == len(leaf.value):
                found[leaf.value] = kinds[0][1]
                self._add(leaf.value, kinds[0][1], leaf.about, leaf.label)
        for value, kind in found.items():
            self._add(value, kind, text=plain)
        return set(found)

    def _read_pairs(self, text: str) -> set[str]:
        """What a text itself says that it is."""
        pairs = list(pairs_in(text))
        self.label_rows.update({label for label, _ in pairs})
        seen: set[str] = set()
        for label, value in pairs:
            found = classify(value)
            kind: Kind = found[0][1] if found and found[0][0] == value else "term"
            if value and kind in _PAIRED:
                self._add(value, kind)
                named = self.values[value]
                named.label, named.named, named.is_secret = label, True, named.is_secret or names_secret(label)
                seen.add(value)
                for part in values_in(value).keys() & self.values.keys() - {value}:
                    if self.values[part].rows == 0:  # of this row alone: the day of a date says nothing by itself
                        self.values[part].before = ""
        return seen

    # --- bookkeeping -------------------------------------------------------------------------------------------------

    def _add(self, value: str, kind: Kind, about: str = "", label: str = "", text: str = "") -> None:
        found = self.values.get(value)
        if found is None:
            self.values[value] = found = Value(value, kind, about, label)
            at = text.find(value)
            before = text[max(0, at - _BESIDE) : max(0, at)].rpartition("\n")[2]
            found.before = before if kind in _LABELLED else ""
            found.is_secret = names_secret(before)
        elif label and (not found.label or (about and not found.about)):
            found.about, found.label = about, label
        found.is_secret |= names_secret(label)

    def _forget(self) -> None:
        """Drop what nobody used and was seen longest ago, and the sentences that say least."""
        if len(self.values) > MOST * 5 // 4:
            ranked = sorted(self.values.values(), key=lambda one: (one.calls + one.said + one.told, one.rows, one.last))
            for one in ranked[:-MOST]:
                del self.values[one.text]
        if len(self.sentences) > MOST * 5 // 4:
            self.sentences = sorted(self.sentences, key=lambda one: (one.marks, one.number))[-MOST:]


def _is_telling(value: Value) -> bool:
    """True for what a person would call a value: no few words, and no number without a unit; none for a secret."""
    return not value.is_secret and value.kind != "term" and (value.kind != "figure" or not _BARE.fullmatch(value.text))
