"""Cuts a row's text into passages of a few sentences, each found and shown by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

PASSAGE_CHARS = 170
"""Characters at which a passage ends at the next end of a sentence. Several short ones from different rows answer more
questions than few long ones."""
_LONGEST = 2 * PASSAGE_CHARS
"""A sentence longer than this is cut at a blank or another mark."""
_WINDOW = 20_000
"""Characters in which an end is looked for at once, so that a text without any gives a passage in every short step."""
_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[\u3002\uff01\uff1b\uff1f])|\n+")
_MARK = re.compile(r"[\s,;|&<>(){}\[\]]")


def passages(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each passage, in order; together they are the whole text."""
    start = 0
    for end, ends_sentence in _ends(text):
        while end - start > _LONGEST:
            cut = _cut(text, start)
            yield start, cut
            start = cut
        if ends_sentence and (end - start >= PASSAGE_CHARS or end == len(text) > start):
            yield start, end
            start = end


def _ends(text: str) -> Iterator[tuple[int, bool]]:
    """(place, True) of each end of a sentence, and (place, False) where none stands in so many characters before it."""
    at, window = 0, _WINDOW
    while at < len(text):
        until = min(at + window, len(text))
        following = until
        for match in _END.finditer(text, at, until):
            if match.end() == until < len(text):
                following = match.start()  # its blanks may go on
            elif match.end() < len(text):
                yield match.end(), True
        window = _WINDOW if following > at else 2 * window
        at = following
        if at < len(text):
            yield at, False
    yield len(text), True


def _cut(text: str, start: int) -> int:
    """After the last mark in the second half of a passage; in the middle of a word only where there is none."""
    marks = [match.end() for match in _MARK.finditer(text, start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS)]
    return marks[-1] if marks else start + PASSAGE_CHARS
