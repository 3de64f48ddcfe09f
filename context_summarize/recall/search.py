"""Finds plain words in text, regardless of case and accents, and cuts excerpts around them. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from context_summarize.transcript.decomposing import decomposed

MAX_WORDS = 64
MAX_CHARS = 400
"""Most characters of a query, because the cursor contains the query."""
_WHOLE = 600
"""Longest row, in characters, that is shown whole."""
_AROUND = 160
"""Characters shown on either side of a word."""
_PIECE = 100_000
"""Characters of a row that are searched at once."""
_OVERLAP = 1_000
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


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """(place, piece) of a text: cut at blanks, or overlapping where there are none. Between two, other threads run."""
    start = 0
    while len(text) - start > _PIECE:
        end = start + _PIECE
        blank = max(text.rfind(" ", end - _OVERLAP, end), text.rfind("\n", end - _OVERLAP, end))
        yield start, text[start : blank if blank >= 0 else end]
        start = blank if blank >= 0 else end - _OVERLAP
    yield start, text[start:]


def words_in(text: str, words: Sequence[str]) -> tuple[int, int]:
    """How many of the comparable words the text holds, also within longer words, and how many as whole words."""
    found: set[str] = set()
    whole: set[str] = set()
    for _, piece in _pieces(text):
        plain = comparable(piece)
        for word in words:
            if word in whole or (at := plain.find(word)) < 0:
                continue
            found.add(word)
            if _whole(word).search(plain, at):
                whole.add(word)
        if len(whole) == len(words):
            break
    return len(found), len(whole)


@lru_cache(4 * MAX_WORDS)
def _whole(word: str) -> re.Pattern[str]:
    """Matches the word unless it is part of a longer word, such as a longer id."""
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")


def excerpt(text: str, words: Sequence[str]) -> str:
    """The text around the first place of each word, as a whole word if possible; a short text is returned whole."""
    if len(text) <= _WHOLE:
        return text
    found = sorted(place for word in words if (place := _place(text, word)))
    spans: list[list[int]] = []
    for start, end in found:
        start, end = max(0, start - _AROUND), min(len(text), end + _AROUND)
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(end, spans[-1][1])
        else:
            spans.append([start, end])
    return "\n[…]\n".join(piece(text, start, end) for start, end in spans)


def _place(text: str, word: str) -> tuple[int, int] | None:
    """Start and end of the first whole word, or else of the first place."""
    part: tuple[int, int] | None = None
    for start, piece in _pieces(text):
        plain = comparable(piece)
        at = plain.find(word)
        if at < 0:
            continue
        whole = _whole(word).search(plain, at)
        if whole or part is None:
            found = whole.start() if whole else at
            part = _place_in(piece, start, plain, (found, found + len(word)))
        if whole:
            break
    return part


def _place_in(piece: str, start: int, plain: str, span: tuple[int, int]) -> tuple[int, int]:
    """A span of the text from one of a piece in comparable form; the piece begins at `start`."""
    if len(plain) == len(piece):
        return start + span[0], start + span[1]
    # Each character is converted separately, so places in the comparable text map back to the text.
    ends = list(accumulate(len(comparable(char)) for char in piece))
    return start + bisect_right(ends, span[0]), start + bisect_right(ends, span[1])


def piece(text: str, start: int, end: int) -> str:
    """A part of a text, with marks where it does not begin or end the text."""
    # The leading "…" also prevents that the rest of a line looks like the header of a row.
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
