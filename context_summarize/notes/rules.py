"""The user's rules: sentences with a sign, such as "always", or sentences that a model's summary quotes as rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from context_summarize.notes.prose import NO_BLANKS, flat
from context_summarize.transcript.escaping import decomposed

_LEAST = 4
"""A line of at least this many words may be a part of a sentence; a shorter one must be the whole sentence."""
_INSIDE = re.compile(r"`[^`]*+`|\"[^\"]*+\"|“[^“”]*+”")
"""A quotation within a sentence: a sign in it does not count."""
_BULLET = re.compile(r"\s*+(?:[-*+•–—]|\(?\d{1,3}[.)])\s++")
_HEADING = re.compile(r"(\s{0,20}[#*_]{0,9}\s{0,20})([^\W\d_][^:\uff1a.!?\n]{0,40}?)[*_]*(?:([:\uff1a])[*_]*|\s*$)")
_DIVIDED = (
    re.compile(r"[;\u061b\uff1b…\"“”«»„「」『』。！？؟।]|(?<=[.!?])\s|\s\(?\d[.)]\s"),  # noqa: RUF001 - of all scripts
    re.compile(r"[,:()\u060c\uff1a、，]|\s[-–—/|]\s"),  # noqa: RUF001
)
"""Places at which a line is divided if it quotes nothing as a whole: into sentences, then into clauses."""


def sign_pattern(signs: Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern for any of these whole words, in any case; `^` is the start of a sentence."""
    parts = ["(?!)"]
    for sign in (sign for sign in signs if sign.strip("^ ")):
        inner = r"\s+".join(map(re.escape, sign.removeprefix("^").split())).replace("'", "['’]")
        before = r"^\W{0,20}" if sign[0] == "^" else r"(?<!\w)"
        parts.append(inner if NO_BLANKS.search(sign) else rf"{before}{inner}(?!\w)")
    return re.compile("|".join(parts), re.I)


def has_sign(pattern: re.Pattern[str], sentence: str) -> bool:
    """Returns True for a sentence with a sign. Questions and sentences as short as "Never mind." do not count."""
    said = _INSIDE.sub(" ", sentence)
    is_long = len(said.split()) > 2 or NO_BLANKS.search(said) is not None
    return is_long and sentence.rstrip()[-1:] not in ("?", "\uff1f") and pattern.search(said) is not None


def quoted_lines(summary: str, heading: str) -> Iterator[tuple[int, str]]:
    """Yields each line of a summary under a heading: the line's number, from 0, and its text."""
    inside = False
    for at, line in enumerate(summary.split("\n")):
        bullet = _BULLET.match(line)
        found = _HEADING.match(line, bullet.end() if bullet else 0)
        if found and found[2].strip().casefold() == heading.casefold():
            inside, line, bullet = True, line[found.end() :], None
        elif found and not bullet and (found[1].strip() or found[3]):
            inside = False
        said = line[bullet.end() if bullet else 0 :].strip()
        if inside and _words(said) > 1:  # "none" is no rule
            yield at, said


def verified(line: str, said: Sequence[str]) -> set[int]:
    """Returns the indexes of the sentences that a line quotes, whole or in parts.

    Args:
        said: the sentences of the user that the summary represents, folded.
    """
    found: set[int] = set()
    parts = [line]
    for divided in (*_DIVIDED, None):
        left: list[str] = []
        for part in parts:
            letters, is_long = folded(part), _words(part) >= _LEAST
            held = {at for at, one in enumerate(said) if letters and (letters in one if is_long else letters == one)}
            found |= held
            left += divided.split(part) if divided and not held else []
        parts = left
    return found


def is_foreign(line: str, said: Sequence[str]) -> bool:
    """Returns True if most words of a line are in none of these sentences; False for one word, such as "none"."""
    letters = " ".join(said)
    words = [word for word in map(folded, line.split()) if len(word) > 2]
    return len(words) > 1 and 2 * sum(word in letters for word in words) < len(words)


def _words(text: str) -> float:
    """Returns how many words a text has; two letters of a script without blanks count as one."""
    return max(sum(any(map(str.isalnum, word)) for word in text.split()), len(NO_BLANKS.findall(text)) / 2)


def folded(text: str) -> str:
    """Returns the letters and digits of a text, without case and accents."""
    return "".join(filter(str.isalnum, decomposed(flat(text)).casefold()))
