"""Cuts prose into quotable pieces: sentences, their terms, shortened texts, and quotation marks around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

GAP = "[…]"
"""Marks in a quotation that words of the message are left out."""
_ENDERS = ".!?…。！？؟।\\n"  # noqa: RUF001 - they end sentences
_END = re.compile(rf"(?<![{_ENDERS}])[{_ENDERS}]++[\"'”’)\]*_]*+(?:\s++|\Z|(?<=[\n。！？؟।]))")  # noqa: RUF001
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st|[a-z])\.\s*$", re.I)
_LONGEST = 280
"""Characters of the longest line that may continue on the next one, and of the longest word that no cut divides."""
_READ = 20_000
"""Characters at each end of a long text that are read."""
_AROUND = ".,;:!?…()[]{}<>\"'`*_“”‘’«»。！？、，「」"  # noqa: RUF001 - signs around words
NO_BLANKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no blanks between words."""
_INNER = re.compile(r"[\w./:@#$%+,'’=&?-]")
"""A sign of a number, an id or a word. No cut is made between two of these."""
_MARKS = (('"', '"'), ("“", "”"), ("«", "»"), ("‹", "›"))  # noqa: RUF001 - quotation marks


def flat(text: str) -> str:
    """Returns the text on one line."""
    return " ".join(text.split())


def cut(text: str, most: int) -> str:
    """Returns the text on one line. If it has more than about `most` characters, a mark replaces its middle."""
    line = flat(text)
    if len(line) <= most:
        return line
    head, tail = _boundary(line, most * 2 // 3, -1), _boundary(line, len(line) - most // 3, 1)
    return f"{line[:head].rstrip()} {GAP} {line[tail:].lstrip()}".strip()


def around(text: str, start: int, end: int, most: int) -> str:
    """Returns about `most` characters around [start, end) of the same line, with marks where it is cut."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    side = max(0, most - (end - start)) // 2
    low = first if start - first <= side else _boundary(text, start - side, 1)
    high = last if last - end <= side else _boundary(text, end + side, -1)
    said = flat(text[min(low, start) : max(high, end)])
    return f"{GAP if low > first else ''} {said} {GAP if high < last else ''}".strip()


def ends_of(text: str) -> str:
    """Returns the text, or the start and the end of a text that is too long to be read."""
    if len(text) <= 2 * _READ:
        return text
    head, tail = _boundary(text, _READ, -1), _boundary(text, len(text) - _READ, 1)
    return f"{text[:head]}\n{text[tail:]}"


def _boundary(text: str, at: int, step: int) -> int:
    """Returns the nearest place in this direction that is not inside a number, an id or a word."""
    for place in range(at, at + step * _LONGEST, step):
        if not 0 < place < len(text):
            return min(max(place, 0), len(text))
        pair = text[place - 1 : place + 1]
        if NO_BLANKS.search(pair) or not all(map(_INNER.match, pair)):
            return place
    return at


def marked(text: str) -> str:
    """Returns the text between the first marks that it does not contain, so that it cannot end its quotation."""
    left, right = next((pair for pair in _MARKS if not any(mark in text for mark in pair)), _MARKS[0])
    return f"{left}{text if left not in text else text.replace(left, chr(39))}{right}"


def sentences_of(text: str) -> Iterator[str]:
    """Yields each sentence on one line. A line that begins with a small letter continues the line before."""
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if match[0][0] == "\n":
            after = text[end : end + 1]
            goes_on = match[0].count("\n") == 1 and after.isalpha() and after.islower() and end - start < _LONGEST
        else:
            is_list = text[start : match.start()].strip().isdigit()
            is_abbreviation = _ABBREVIATION.search(text, max(start, end - 10), end) is not None
            goes_on = match[0][0] == "." and (is_list or is_abbreviation)
        if not goes_on:
            yield flat(text[start:end])
            start = end
    if said := flat(text[start:]):
        yield said


def has_digit(text: str) -> bool:
    """Returns True if the text contains a digit."""
    return any(map(str.isdigit, text))


def terms_of(text: str) -> tuple[str, ...]:
    """Returns the terms by which texts are compared, each once: words and figures in lower case.

    In scripts without blanks between words, each pair of letters is a term.
    """
    found: dict[str, None] = {}
    for word in text.lower().split():
        plain = word.strip(_AROUND)
        if NO_BLANKS.search(plain):
            found |= dict.fromkeys(plain[at : at + 2] for at in range(max(1, len(plain) - 1)))
        elif len(plain) > 2 or has_digit(plain):
            found[plain] = None
    return tuple(found)
