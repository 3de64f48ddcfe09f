"""Which values and sentences a row of notes holds: one score for all, filled by shares of the history, then by worth.

The score is worth for its tokens. A value is worth more where later rows used it again, where the user said it, where a
text names what it is, where few rows hold it, and where it was seen a short while ago.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from context_summarize.notes.patterns import Kind
from context_summarize.notes.values import Candidates, Sentence, Value

_BASE: dict[Kind, float] = {"path": 2.0, "url": 1.0, "id": 1.0, "name": 1.0, "figure": 1.0, "term": 1.0}
"""What a value is worth that was seen once, long ago, in a result."""
_CALLED, _SAID, _SEEN = 3.0, 1.5, 0.5
"""For each doubling of the rows that use it in a call, write it, hold it."""
_BY_USER = 2.0
_NAMED, _TELLING = 3.0, 20
"""Where a text names it; in full for a label that one row in so many has."""
_TOLD = 3.0
"""Where a summary told it that is merged by now."""
_RECENT, _FADING = 2.0, 100
"""For a value of this moment; after so many rows a third of it is left."""
_USE_FADING, _LASTING = 300, 0.2
"""What a use is worth fades too, down to a fifth."""
_RARE_WORD = 0.5
"""For each word of a sentence that no other row has."""
_OTHERS = 0.3
"""Share of the worth of a sentence's values beside the best one."""
_OVERHEAD = 20
"""Tokens that are added to the price of each entry, so that a sentence is not too dear beside a bare value."""
_STRETCHES = 8
"""Parts of the history that share half of the room evenly."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What may be written: a value or a sentence."""

    score: float
    tokens: int
    number: int
    what: Value | Sentence


def chosen(candidates: Candidates, room: int, shown: Container[str], text: str) -> list[Entry]:
    """The entries of at most `room` tokens that say most; values that are `shown` already are worth nothing."""
    ranked = sorted(_entries(candidates, shown, text), key=lambda entry: -entry.score)
    taken: list[Entry] = []
    later: list[Entry] = []
    held: set[str] = set()
    shares = [room / 2 / _STRETCHES] * _STRETCHES
    for entry in ranked:
        at = min(_STRETCHES - 1, _STRETCHES * (entry.number - 1) // max(1, candidates.rows))
        if entry.tokens <= shares[at] and _adds(entry, held):
            shares[at] -= entry.tokens
            _take(entry, taken, held)
        else:
            later.append(entry)
    left = room - sum(entry.tokens for entry in taken)
    for entry in later:
        if entry.tokens <= left and _adds(entry, held):
            left -= entry.tokens
            _take(entry, taken, held)
    return taken


def _take(entry: Entry, taken: list[Entry], held: set[str]) -> None:
    taken.append(entry)
    held.update(entry.what.values if isinstance(entry.what, Sentence) else (entry.what.text,))


def _adds(entry: Entry, held: set[str]) -> bool:
    what = entry.what
    if isinstance(what, Value):
        return what.text not in held
    return not what.values or not held.issuperset(what.values)


def _entries(candidates: Candidates, shown: Container[str], text: str) -> Iterator[Entry]:
    worth: dict[str, float] = {}
    for value in candidates.values.values():
        if value.text in shown or (value.kind == "term" and value.text in text):
            continue
        worth[value.text] = score = _worth(value, candidates)
        if value.kind != "figure" or value.label:  # a bare figure says nothing; sentences hold it
            tokens = value.tokens + 3 * bool(value.label)
            yield Entry(score / (tokens + _OVERHEAD), tokens, value.last, value)
    rows = candidates.word_rows
    for sentence in candidates.sentences:
        best, *others = sorted((worth.get(value, 0.0) for value in sentence.values), reverse=True) or [0.0]
        score = best + _OTHERS * sum(others) + _RARE_WORD * sum(1 / rows[word] for word in sentence.words)
        yield Entry(score / (sentence.tokens + _OVERHEAD), sentence.tokens, sentence.number, sentence)


def _worth(value: Value, candidates: Candidates) -> float:
    age = candidates.rows - value.last
    named = 0.0
    if value.named:
        share = candidates.rows / max(1, candidates.label_rows[value.label])
        named = _NAMED * min(1.0, math.log(max(1.0, share)) / math.log(_TELLING))
    if value.kind in ("figure", "term"):
        return (_BASE[value.kind] + value.by_user + named + _TOLD * value.told) / max(1, value.rows)
    used = _CALLED * math.log2(1 + value.calls) + _SAID * math.log2(1 + value.said)
    used += _SEEN * math.log2(max(1, value.rows))
    lasting = _LASTING + (1 - _LASTING) * math.exp(-age / _USE_FADING)
    recent = _RECENT * math.exp(-age / _FADING)
    return _BASE[value.kind] + _BY_USER * value.by_user + _TOLD * value.told + named + lasting * used + recent


def written(entries: Sequence[Entry]) -> str:
    """The entries as lines: values by kind, the newest first, those of one object together; then what was said."""
    values = sorted((one.what for one in entries if isinstance(one.what, Value)), key=lambda one: -one.last)
    said = sorted((one.what for one in entries if isinstance(one.what, Sentence)), key=lambda one: one.number)
    lines = []
    for title, kinds in (("Paths and addresses", ("path", "url")), ("Names of code", ("name",))):
        if found := [one.text for one in values if one.kind in kinds]:
            lines.append(f"{title}: {'; '.join(found)}")
    objects: dict[str, list[Value]] = {}
    for one in values:
        if one.kind in ("id", "figure", "term"):
            objects.setdefault(one.about, []).append(one)
    for about, found_of in objects.items():
        told = "; ".join(_labelled(one) for one in found_of if one.text != about)
        lines.append(f"{about}: {told}" if about else told)
    return "\n".join([*lines, *(f"#{one.number} {one.text}" for one in said)])


def _labelled(value: Value) -> str:
    if not value.label:
        return value.text
    return f"{value.label}: {value.text}" if value.named else f"{value.label} {value.text}"
