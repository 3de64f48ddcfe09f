"""Finds plain words in text, regardless of case and accents, and cuts excerpts around them. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from context_summarize.transcript.decomposing import decomposed

MAX_WORDS = 16
MAX_CHARS = 200
"""Most characters of a query, because the cursor contains the query."""
_WHOLE = 600
"""Longest row, in characters, that is shown whole."""
_AROUND = 160
"""Characters shown on either side of a word."""
_ENDS = "\"'`.,;:!?()[]{}<>\u201c\u201d\u2018\u2019\u00ab\u00bb\u2026"
_MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")


def comparable(text: str) -> str:
    """The text in a form for comparison: one case, compatible characters as one, no accents."""
    if text.isascii():
        return text.lower()
    return _MARKS.sub("", decomposed(text.casefold())).casefold()


def query_words(text: str) -> tuple[str, ...]:
    """The words of a query in comparable form, each once, without the punctuation around them."""
    words = (word.strip(_ENDS) or word for word in comparable(text).split())
    return tuple(dict.fromkeys(words))


def words_in(text: str, words: Sequence[str]) -> tuple[int, int]:
    """How many of the comparable words the text holds, also within longer words, and how many as whole words."""
    plain = comparable(text)
    places = [(plain.find(word), word) for word in words]
    found = [(at, word) for at, word in places if at >= 0]
    return len(found), sum(_whole(word).search(plain, at) is not None for at, word in found)


@lru_cache(4 * MAX_WORDS)
def _whole(word: str) -> re.Pattern[str]:
    """Matches the word unless it is part of a longer word, such as a longer id."""
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")


def excerpt(text: str, words: Sequence[str]) -> str:
    """The text around the first place of each word, as a whole word if possible; a short text is returned whole."""
    if len(text) <= _WHOLE:
        return text
    plain = comparable(text)
    found = sorted((at, at + len(word)) for word in words if (at := _place(plain, word)) >= 0)
    if len(plain) != len(text):
        # Each character is converted separately, so places in the comparable text map back to the text.
        ends = list(accumulate(len(comparable(char)) for char in text))
        found = [(bisect_right(ends, start), bisect_right(ends, end)) for start, end in found]
    spans: list[list[int]] = []
    for start, end in found:
        start, end = max(0, start - _AROUND), min(len(text), end + _AROUND)
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(end, spans[-1][1])
        else:
            spans.append([start, end])
    return "\n[…]\n".join(_piece(text, start, end) for start, end in spans)


def _place(plain: str, word: str) -> int:
    at = plain.find(word)
    whole = _whole(word).search(plain, at) if at >= 0 else None
    return whole.start() if whole else at


def _piece(text: str, start: int, end: int) -> str:
    # The leading "…" also prevents that the rest of a line looks like the header of a row.
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
