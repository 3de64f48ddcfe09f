"""Cuts prose into quotable pieces: sentences, their terms, and shortened texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

GAP = "[…]"
"""Marks in a quotation that words of the message are left out."""
_ENDERS = ".!?…。！？؟।\\n"  # noqa: RUF001 - they end sentences
_END = re.compile(rf"(?<![{_ENDERS}])[{_ENDERS}]++[\"'”’)\]*_]*+(?:\s++|\Z|(?<=[\n。！？؟।]))")  # noqa: RUF001
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st|[a-z])\.\s*$", re.I)
_LONGEST = 280
"""Characters of the longest line that may continue on the next one."""
_AROUND = ".,;:!?…()[]{}<>\"'`*_“”‘’«»。！？、，「」"  # noqa: RUF001 - signs around words
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
NO_BLANKS = re.compile(f"[{_UNSPACED}]")
"""Letters of scripts that put no blanks between words."""
_FIRST = re.compile(rf"[^\s{_UNSPACED}]{{1,280}}(?=[\s{_UNSPACED}])")
_LAST = re.compile(rf"(?<=[\s{_UNSPACED}])[^\s{_UNSPACED}]{{1,280}}\Z")
"""The word that a cut may have divided, behind it and before it."""
_MOST_TERMS = 40
"""Terms that count of one sentence, however long it is."""


def flat(text: str) -> str:
    """Returns the text on one line."""
    return " ".join(text.split())


def cut(text: str, most: int) -> str:
    """Returns the text on one line. If it has more than about `most` characters, a mark replaces its middle."""
    line = flat(text)
    if len(line) <= most:
        return line
    head, tail = _LAST.sub("", line[: most * 2 // 3]), line[len(line) - most // 3 :]
    divided = _FIRST.match(tail)
    return f"{head.rstrip()} {GAP} {tail[divided.end() if divided else 0 :].lstrip()}"


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
    """Returns the first terms by which texts are compared, each once: words and figures in lower case.

    In scripts without blanks between words, each pair of letters is a term.
    """
    found: dict[str, None] = {}
    for word in text.lower().split():
        plain = word.strip(_AROUND)
        if NO_BLANKS.search(plain):
            found |= dict.fromkeys(plain[at : at + 2] for at in range(min(max(1, len(plain) - 1), _MOST_TERMS)))
        elif len(plain) > 2 or has_digit(plain):
            found[plain] = None
        if len(found) >= _MOST_TERMS:
            break
    return tuple(found)[:_MOST_TERMS]
