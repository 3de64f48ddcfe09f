"""Texts as they are meant: without escapes, colour codes and continued lines, and the way back to the original."""

from __future__ import annotations

import re
from array import array
from functools import lru_cache
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
        pieces, at = list[str](), 0
        self._starts, self._ends = array("q"), array("q")
        """The place of each character in the original."""
        for found in disguises.finditer(text):
            plain = gap if found.lastgroup else _plain(found[0])
            pieces += [text[at : found.start()], plain]
            self._starts.extend(range(at, found.start() + len(plain)))
            self._ends.extend([*range(at + 1, found.start() + 1), *[found.end()] * len(plain)])
            at = found.end()
        self.text = "".join([*pieces, text[at:]])
        self._starts.extend(range(at, len(text)))
        self._ends.extend(range(at + 1, len(text) + 1))

    def back(self, span: Span) -> Span:
        """Returns the span in the original. What was taken out at its ends stays outside."""
        return Span(self._starts[span.first], self._ends[span.end - 1], span.kind)

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
