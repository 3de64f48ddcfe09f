"""The user's standing instructions: quoted by the summariser or told by a sign, and verified in the user's own text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from context_summarize.notes.own_text import own_lines

_LEAST_WORDS, _LEAST_CHARACTERS = 4, 8
"""A quotation is looked up from so many words on, or characters of a script without blanks."""
LONGEST = 400
"""Characters of one instruction."""
_INSIDE = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
"""What a sentence quotes: a sign in it is not the user's."""
_BULLET = re.compile(r"\s*(?:[-*+•–—]|\(?\d{1,3}[.)])\s+")
_END = re.compile(r"(?<![.!?…\[])[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？]+|\n")  # noqa: RUF001 - they end sentences
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st|[A-Za-z])\.$", re.I)
_HEADING = re.compile(r"\s*(?:[#*_]{0,3})([^\W\d_][^:\uff1a\n]{0,40})[*_]{0,2}[:\uff1a]")
_PART = re.compile(r"[;\u061b\uff1b]|(?<=[.!?。！？])\s*|[\"“”«»„]|[「」『』]")  # noqa: RUF001 - signs of other scripts
_NO_BLANKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


Place = tuple[int, int, int]
"""Row, start and end of an instruction."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A sentence of the user: where it stands in the row's own text, and the text itself."""

    row: int
    """Number of the row, as frames count."""
    start: int
    end: int
    text: str


def quoted_lines(summary: str, heading: str) -> Iterator[str]:
    """The lines of a summary under a heading, up to the next heading."""
    inside = False
    for line in summary.split("\n"):
        found = _HEADING.match(line)
        if found and found[1].strip().casefold() == heading.casefold():
            inside = True
            line = line[found.end() :]
        elif found and not _BULLET.match(line):
            inside = False
        if inside and line.strip():
            yield _BULLET.sub("", line, count=1).strip()


def verified(lines: Sequence[str], rows: Sequence[tuple[int, str]]) -> list[Instruction]:
    """The user's own sentences that these lines quote; what the user did not write is dropped.

    Args:
        rows: (number, own text) of the user's rows that the summary stands for.
    """
    found: dict[tuple[int, int], Instruction] = {}
    for line in lines:
        for part in [line, *_PART.split(line)]:
            pattern = _lookup(part)
            if pattern is None:
                continue
            hits = [one for number, text in rows for one in _sentences_with(pattern, number, text)]
            found.update(((one.row, one.start), one) for one in hits)
            if hits:
                break
    return sorted(found.values(), key=lambda one: (one.row, one.start))


def signalled(signs: Sequence[str], rows: Sequence[tuple[int, str]]) -> list[Instruction]:
    """The user's own sentences that hold a sign, such as "always"; no question is one."""
    pattern = _any_of(tuple(signs))
    if pattern is None:
        return []
    return [
        one
        for number, text in rows
        for one in _sentences(number, text)
        if pattern.search(_INSIDE.sub(" ", one.text)) and not one.text.endswith(("?", "\uff1f"))
    ]


def placed(places: Sequence[Place], text: str) -> list[Instruction]:
    """The sentences of one row's own text that begin at these places."""
    return [one for row, start, _ in places for one in _sentences(row, text) if one.start == start]


def _lookup(quotation: str) -> re.Pattern[str] | None:
    """A pattern for the words of a quotation in their order, whatever stands between them; None if they are too few."""
    words = re.findall(r"\w+", quotation)
    dense = sum(len(word) for word in words if _NO_BLANKS.search(word))
    if len(words) < _LEAST_WORDS and dense < _LEAST_CHARACTERS:
        return None
    return re.compile(r"(?<!\w)" * (not dense) + r"\W{1,4}".join(map(re.escape, words)), re.I)


def _sentences_with(pattern: re.Pattern[str], number: int, text: str) -> Iterator[Instruction]:
    own = "\n".join(own_lines(text))
    for hit in pattern.finditer(own):
        for one in _sentences(number, text):
            if one.start < hit.end() and hit.start() < one.end:
                yield one


@lru_cache(maxsize=256)
def _sentences(number: int, text: str) -> tuple[Instruction, ...]:
    """The sentences of the user's own text, each on one line."""
    own = "\n".join(own_lines(text))
    found: list[Instruction] = []
    start = 0
    for end in _ends(own):
        flat = " ".join(_BULLET.sub("", own[start:end], count=1).split())
        if flat:
            found.append(Instruction(number, start, end, flat[:LONGEST]))
        start = end
    return tuple(found)


def _ends(text: str) -> Iterator[int]:
    """Where sentences end."""
    for match in _END.finditer(text):
        if not _ABBREVIATION.search(text[max(0, match.start() - 10) : match.end()]):
            yield match.end()
    yield len(text)


@lru_cache(maxsize=8)
def _any_of(signs: tuple[str, ...]) -> re.Pattern[str] | None:
    """A pattern for any of these words, whole, in any case and with any apostrophe; `^` is the start of a sentence."""
    parts = []
    for sign in sorted((sign.strip() for sign in signs), key=len, reverse=True):
        if sign:
            words = sign.removeprefix("^").split()
            inner = r"\s+".join(re.escape(part).replace("'", "['’]") for part in words)
            before = r"^\W*" if sign[0] == "^" else r"(?<!\w)"
            parts.append(inner if _NO_BLANKS.search(sign) else rf"{before}{inner}(?!\w)")
    return re.compile("|".join(parts), re.I) if parts else None
