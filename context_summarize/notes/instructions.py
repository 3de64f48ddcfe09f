"""The user's standing instructions: quoted by the summariser or told by a sign, and verified in the user's own text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from context_summarize.notes.own_text import own_text
from context_summarize.notes.sentences import sentences_of, shortened

_LEAST = 4
"""A quotation is looked up from so many words on; a sentence from half."""
LONGEST = 400
"""Characters of one instruction, with its lead."""
_SHORT = 8
"""A sentence of fewer words leans on the one before it in its line: "The cap is $900. Never exceed it."."""
_INSIDE = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^“”]*”")
"""What a sentence quotes: a sign in it is not the user's."""
_BULLET = re.compile(r"\s*(?:[-*+•–—]|\(?\d{1,3}[.)])\s+")
_HEADING = re.compile(r"(\s{0,20}[#*_]{0,9}\s{0,20})([^\W\d_][^:\uff1a.!?\n]{0,40}?)[*_]*(?:([:\uff1a])[*_]*|\s*$)")
_DIVIDED = (
    re.compile(r"[;\u061b\uff1b…\"“”«»„「」『』。！？؟।]|(?<=[.!?])\s|\s\(?\d[.)]\s"),  # noqa: RUF001 - of all scripts
    re.compile(r"[,:()\u060c\uff1a、，]|\s[-–—/|]\s"),  # noqa: RUF001
)
"""Where a line that is no quotation as a whole is divided: into sentences, then into clauses."""
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
    lead: str = ""
    """The sentence before it in its line, where it is too short to be understood alone."""


def quoted_lines(summary: str, heading: str) -> Iterator[str]:
    """The lines of a summary under a heading, up to the next heading."""
    inside = False
    for line in summary.split("\n"):
        bullet = _BULLET.match(line)
        found = _HEADING.match(line, bullet.end() if bullet else 0)
        if found and found[2].strip().casefold() == heading.casefold():
            inside, line, bullet = True, line[found.end() :], None
        elif found and not bullet and (found[1].strip() or found[3]):
            inside = False
        if inside and line.strip():
            yield line[bullet.end() if bullet else 0 :].strip()


def verified(lines: Sequence[str], rows: Sequence[tuple[int, str]]) -> list[Instruction]:
    """The user's own sentences that these lines quote; what the user did not write is dropped.

    Args:
        rows: (number, own text) of the user's rows that the summary stands for.
    """
    own = [(number, own_text(text)) for number, text in rows]
    read = [_OwnText(*_folded(text), _sentences(number, text)) for number, text in own]
    found = {(one.row, one.start): one for line in lines for one in _quoted(line, read, _DIVIDED)}
    return [found[place] for place in sorted(found)]


def signalled(signs: Sequence[str], number: int, text: str) -> list[Instruction]:
    """The user's own sentences that hold a sign, such as "always"; no question, and nothing like "Never mind."."""
    low = " ".join(text.lower().replace("’", "'").split())
    if not any(sign.strip("^ ") in low for sign in signs):
        return []
    pattern, own = _any_of(tuple(signs)), own_text(text)
    told = [(one, _INSIDE.sub(" ", own[one.start : one.end].rstrip())) for one in _sentences(number, own)]
    telling = [(one, said) for one, said in told if len(said.split()) > 2 or _NO_BLANKS.search(said)]
    return [one for one, said in telling if pattern.search(said) and one.text[-1] not in "?\uff1f"]


def placed(places: Sequence[Place], text: str) -> list[Instruction]:
    """The sentences of one row's own text that begin at these places."""
    starts = {start for _, start, _ in places}
    return [one for one in _sentences(places[0][0], own_text(text)) if one.start in starts] if places else []


class _OwnText(NamedTuple):
    """The own text of a row of the user: its letters, where they stand, and its sentences."""

    letters: str
    places: Sequence[int]
    sentences: Sequence[Instruction]


def _quoted(line: str, rows: Sequence[_OwnText], divided: Sequence[re.Pattern[str]]) -> list[Instruction]:
    """The sentences that hold this line; if there are none, those that hold a part of it."""
    found = [one for row in rows for one in _holding(line, row)]
    if found or not divided:
        return found
    return [one for part in divided[0].split(line) for one in _quoted(part, rows, divided[1:])]


def _holding(quotation: str, row: _OwnText) -> Iterator[Instruction]:
    """The sentences of one row with the letters and digits of a quotation in their order, whatever stands between."""
    letters, _ = _folded(quotation)
    size = _words(quotation)
    at = row.letters.find(letters) if 2 * size >= _LEAST else -1
    while at >= 0:
        first, last = row.places[at], row.places[at + len(letters) - 1]
        near = bisect_right(row.sentences, first, key=lambda one: one.end)
        for one in row.sentences[near : bisect_right(row.sentences, last, near, key=lambda one: one.start)]:
            if size >= _LEAST or _folded(one.text)[0] == letters:
                yield one
        at = row.letters.find(letters, at + len(letters))


def _words(text: str) -> float:
    """How many words it has; two characters of a script without blanks are one."""
    return max(sum(any(map(str.isalnum, word)) for word in text.split()), len(_NO_BLANKS.findall(text)) / 2)


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Letters and digits without case and accents, and where each stands."""
    signs = ((unicodedata.normalize("NFKD", sign).casefold(), at) for at, sign in enumerate(text))
    pairs = [(letter, at) for folded, at in signs for letter in folded if letter.isalnum()]
    return "".join(letter for letter, _ in pairs), [at for _, at in pairs]


def _sentences(number: int, own: str) -> list[Instruction]:
    """The sentences of the user's own text."""
    found: list[Instruction] = []
    for start, end in sentences_of(own):
        bullet = _BULLET.match(own, start, end)
        flat = " ".join(own[bullet.end() if bullet else start : end].split())
        if flat:
            lead = found[-1].text if found and "\n" not in own[found[-1].start : start] else ""
            leans = _words(flat) < _SHORT and len(lead) + len(flat) < LONGEST
            found.append(Instruction(number, start, end, shortened(flat, LONGEST), lead if leans else ""))
    return found


@lru_cache(maxsize=8)
def _any_of(signs: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for any of these words, whole, in any case and with any apostrophe; `^` is the start of a line."""
    parts = ["(?!)"]
    for sign in (sign for sign in signs if sign.strip("^ ")):
        inner = r"\s+".join(map(re.escape, sign.removeprefix("^").split())).replace("'", "['’]")
        before = r"^\W{0,20}" if sign[0] == "^" else r"(?<!\w)"
        parts.append(inner if _NO_BLANKS.search(sign) else rf"{before}{inner}(?!\w)")
    return re.compile("|".join(parts), re.I | re.M)
