"""Cuts a row's text into passages of a few sentences, each found and shown by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

PASSAGE_CHARS = 170
"""Characters at which a passage ends at the next end of a sentence. Several short ones from different rows answer more
questions than few long ones."""
_LONGEST = 2 * PASSAGE_CHARS
"""A sentence longer than this is cut at a blank or another mark."""
_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[\u3002\uff01\uff1b\uff1f])|\n+")
_MARK = re.compile(r"[\s,;|&<>(){}\[\]]")


def passages(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each passage, in order; together they are the whole text."""
    start = 0
    for end in _ends(text):
        while end - start > _LONGEST:
            cut = _cut(text, start)
            yield start, cut
            start = cut
        if end - start >= PASSAGE_CHARS or end == len(text) > start:
            yield start, end
            start = end


def _ends(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        if match.end() < len(text):
            yield match.end()
    yield len(text)


def _cut(text: str, start: int) -> int:
    """After the last mark in the second half of a passage; in the middle of a word only where there is none."""
    marks = [match.end() for match in _MARK.finditer(text, start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS)]
    return marks[-1] if marks else start + PASSAGE_CHARS
