"""Texts as they are meant: without escapes, colour codes and continued lines, and the way back to the original."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property, lru_cache
from html import unescape

from context_summarize.redaction.formats import Span
from context_summarize.redaction.words import shapes

_IN, _AT = shapes("views.in"), shapes("views.at")
ESCAPED, JOINED, SPACED = _IN["escaped"], _IN["joined"], _IN["spaced"]
_MEANT = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b", "033": "\x1b", "b": " ", "f": " "}


class View:
    """A text as it is meant: without escapes and colour codes, each of which is one character here, or none.

    Args:
        gap: replaces a colour code or the end of a continued line: a blank for secrets that begin or end at one,
            nothing for secrets that it splits.
    """

    def __init__(self, text: str, disguises: re.Pattern[str], gap: str = "") -> None:
        self._of, self._disguises = text, disguises
        self._gap = gap
        self.text = disguises.sub(self._meant, text)

    def _meant(self, found: re.Match[str]) -> str:
        return self._gap if found.lastgroup else _plain(found[0])

    @cached_property
    def _places(self) -> tuple[list[int], list[int], dict[int, int]]:
        """Returns the place after each code, how many characters were removed so far, and the width of each code."""
        places, shifts, widths = [0], [0], {}
        for found in self._disguises.finditer(self._of):
            at = found.start() - shifts[-1]
            if plain := self._meant(found):
                widths[at] = found.end() - found.start()
            places.append(at + len(plain))
            shifts.append(found.end() - places[-1])
        return places, shifts, widths

    def back(self, span: Span) -> Span:
        """Returns the span in the original. What was taken out at its ends stays outside."""
        places, shifts, widths = self._places

        def original(at: int) -> int:
            return at + shifts[bisect_right(places, at) - 1]

        last = span.end - 1
        return Span(original(span.first), original(last) + widths.get(last, 1), span.kind)

    def is_joined(self, span: Span) -> bool:
        """Returns True for a whole token that holds, in the original, something that the view does not show."""
        there = self.back(span)
        return there.end - there.first != span.end - span.first and _AT["goes_on"].match(self.text, span.end) is None


@lru_cache(maxsize=1024)
def _plain(coded: str) -> str:
    """Returns the character that a code means."""
    if coded.startswith("&"):
        return unescape(coded.replace("amp;", ""))
    sign = coded.lstrip("\\%=")
    if not coded.startswith("\\"):
        char = chr(int(coded[-2:], 16))
    else:
        char = _MEANT.get(sign) or (chr(int(sign[1:], 16)) if sign[1:] else sign)
    return char if char.isprintable() or char in "\t\n\r\x1b" else " "
