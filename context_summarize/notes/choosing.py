"""Which values and sentences a row of notes holds: one score for all.

The score is worth for its tokens. A value is worth more where later rows used it again, where the user said it, where a
text names what it is, where few rows hold it, and where it was seen a short while ago.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from context_summarize.notes.patterns import Kind, values_in
from context_summarize.notes.sentences import words_of
from context_summarize.notes.values import Candidates, Sentence, Value
from context_summarize.tokens.measure import Count

_FIGURE, _BASE, _PATH = 0.3, 1.0, 2.0
"""What a figure, another value, or a path is worth that was seen once, long ago, in a result."""
_CALLED, _SAID, _SEEN = 3.0, 1.5, 0.5
"""For each doubling of the rows that use it in a call, write it, hold it."""
_BY_USER = 2.0
"""Where the user said it."""
_NAMED, _TELLING = 3.0, 10
"""Where a text names it; in full for a label that one row in so many has."""
_SPEAKER = 4
"""What stands before a colon in more than one of so many rows is who speaks."""
_TOLD = 6.0
"""Where a summary told it that is merged by now."""
_RECENT = 2.0
"""For a value of this moment."""
_FADING, _LASTING = 100, 0.2
"""After so many rows a third of that is left; what a use is worth fades too, down to a fifth."""
_SAYS = 0.4
"""For each word of a sentence that no other row has."""
_MARKED = 4
"""Tokens of what stands beside an entry: a label, a number, a line end."""
_OVERHEAD = 10
"""Tokens that are added to the price of each entry, so that a sentence is not too dear beside a bare value."""
_TITLES: Mapping[Kind, str] = {
    "path": "Paths and addresses",
    "url": "Paths and addresses",
    "name": "Files and names of code",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What may be written: a value or a sentence."""

    score: float
    tokens: int
    values: tuple[str, ...]
    what: Value | Sentence


def ranked(candidates: Candidates, shown: str, count: Count) -> list[Entry]:
    """All that may be written, the best first; what is `shown` already is left out."""
    return sorted(_entries(candidates, shown, count), key=lambda entry: -entry.score)


def chosen(entries: Sequence[Entry], room: int) -> list[Entry]:
    """The best of ranked entries, of at most `room` tokens; none whose values the others hold."""
    taken: list[Entry] = []
    held: set[str] = set()
    for entry in entries:
        if entry.tokens <= room and not (entry.values and held.issuperset(entry.values)):
            room -= entry.tokens
            taken.append(entry)
            held.update(entry.values)
    return taken


def _entries(candidates: Candidates, shown: str, count: Count) -> Iterator[Entry]:
    worth: dict[str, float] = {}
    exact = values_in(shown)
    hidden = {value.text for value in candidates.values.values() if value.is_secret}
    for value in candidates.values.values():
        if value.is_secret or value.text in exact or (value.kind == "term" and value.text in shown):
            continue
        worth[value.text] = score = _worth(value, candidates)
        if score and (value.kind != "figure" or value.label or value.before):  # a bare figure says nothing
            value.tokens = value.tokens or count(value.text) + 1 + 3 * bool(value.label or value.before)
            yield Entry(score / (value.tokens + _OVERHEAD), value.tokens, (value.text,), value)
    rows = candidates.word_rows
    for sentence in candidates.sentences:
        if sentence.text not in shown and hidden.isdisjoint(sentence.values):
            best = max((worth.get(value, 0.0) for value in sentence.values), default=0.0)
            says = sentence.marks + math.fsum(1 / rows[word] for word in sentence.words)
            sentence.tokens = sentence.tokens or count(sentence.text) + _MARKED
            score = (best + _SAYS * says) / (sentence.tokens + _OVERHEAD)
            yield Entry(score, sentence.tokens, sentence.values, sentence)


def _worth(value: Value, candidates: Candidates) -> float:
    told = _TOLD * value.told
    if value.named:
        share = candidates.rows / max(1, candidates.label_rows[value.label])
        told = (told + _NAMED) * min(1.0, share / _TELLING) if share > _SPEAKER else 0.0
    if value.kind == "term":
        return told / max(1, value.rows)
    if value.kind == "figure":
        return (_FIGURE + value.by_user + told) / max(1, value.rows)
    worth = _BY_USER * value.by_user + told + (_PATH if value.kind == "path" else _BASE)
    used = _CALLED * math.log2(1 + value.calls) + _SAID * math.log2(1 + value.said) + _SEEN * math.log2(value.rows)
    fading = math.exp((value.last - candidates.rows) / _FADING)
    return worth + used * (_LASTING + (1 - _LASTING) * fading) + _RECENT * fading


def written(entries: Sequence[Entry], word_rows: Counter[str]) -> str:
    """The entries as lines: values by kind, the newest first, those of one object together; then what was said.

    Args:
        word_rows: in how many rows a word stands: rare ones say best what a value is.
    """
    values = sorted((one.what for one in entries if isinstance(one.what, Value)), key=lambda one: -one.last)
    said = sorted((one.what for one in entries if isinstance(one.what, Sentence)), key=lambda one: one.number)
    groups: dict[str, list[Value]] = {title: [] for title in _TITLES.values()}
    for one in values:
        groups.setdefault(_TITLES.get(one.kind, one.about), []).append(one)
    lines = []
    for about, members in groups.items():
        told = ", ".join(one.text for one in members) if about in _TITLES.values() else _by_label(members, word_rows)
        if members:
            lines.append(": ".join(part for part in (about, told) if part))
    return "\n".join([*lines, *(f"#{one.number} {one.text}" for one in said)])


def _by_label(values: Sequence[Value], word_rows: Counter[str]) -> str:
    """The values of one object, or of none: those with the same label stand behind it."""
    groups: dict[str, list[str]] = {}
    for one in values:
        is_subject = one.about.endswith(f" {one.text}")
        label = "" if is_subject else one.label or _words_beside(one, word_rows)
        if label or not one.about:
            groups.setdefault(label.lower(), []).append(one.text)
    bare = ", ".join(groups.pop("", []))
    told = [f"{label}: {', '.join(found)}" for label, found in groups.items()]
    return "; ".join([*told, *([f"others: {bare}" if told else bare] if bare else [])])


def _words_beside(value: Value, word_rows: Counter[str]) -> str:
    """The words before a value that say what it is: the two rarest ones, and the two right before it."""
    words = [word for word in words_of(value.before) if word[0].isalpha()]
    kept = {*sorted(words, key=lambda word: word_rows[word])[:2], *words[-2:]}
    return " ".join(word for word in words if word in kept)
