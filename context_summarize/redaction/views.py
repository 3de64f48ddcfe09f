"""Texts as they are meant: without escapes, colour codes and continued lines, and the way back to the original."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property, lru_cache
from html import unescape

from context_summarize.redaction.formats import Span

ESCAPED = re.compile(r"\\(?<!\\\\)\\*+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|033|[nrtbfe\"'`/])")
"""JSON within JSON within JSON has more and more backslashes before one sign."""
_MEANT = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b", "033": "\x1b", "b": " ", "f": " "}
_ESC = r"(?:\x1b|\^\[|\u241b)"
_COLOUR = (
    rf"(?P<colour>{_ESC}\[[0-?]{{0,24}}[ -/]{{0,2}}[@-~]|{_ESC}\]\d{{1,4}};[^;\x07\x1b\s]{{0,40}};|{_ESC}\\|\x07"
    r"|\[\d{0,3}(?:;\d{1,3}){0,5}m|[\u00ad\u200b-\u200d\u2060\ufeff])"
)
_CONTINUED = (
    r"(?P<continued>\\\r?\n[ \t]{0,40}"  # a shell's
    r"|(?<=\S)[\"']\s{0,4}[+.\\]?[ \t]{0,4}\r?\n[ \t]{0,40}(?:[+.][ \t]{0,4})?[\"'](?=[\w+/=.-]{8})"  # two literals
    # a token that a terminal or an editor has wrapped: its rest is all that the next line holds
    r"|(?<=[\w+/=.-]{40})\r?\n(?=(?=[\w+/.-]{0,200}\d)(?=[\w+/.-]{0,200}[A-Za-z])[\w+/.-]{8,200}+={0,2}"
    r"(?:\s{0,4}\Z|\r?\n|[\"'`])))"
)
_CODED = (
    r"%(?:25){0,4}(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
    r"|&(?:amp;){0,4}(?:quot|apos|lt|gt|nbsp|amp|\#\d{1,3}|\#[xX]0{0,4}[0-9a-fA-F]{1,2});"
    r"|=(?:3D|22|20|27|2D|5F)"
)
# Few places begin with a character that may be meant otherwise; the others are passed over quickly.
_SIGNS = r"\x1b\^\u241b\x07\[\u00ad\u200b-\u200d\u2060\ufeff%&="
JOINED = re.compile(rf"(?=[{_SIGNS}\\\r\n\"'])(?:{_COLOUR}|{_CONTINUED}|{_CODED})")
SPACED = re.compile(rf"(?=[{_SIGNS}])(?:{_COLOUR}|{_CODED})")
_GOES_ON = re.compile(r"[\w-]|\.{1,2}\w")
"""Matches if the text goes on after a token, so that the token is only a part of a word."""


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
        return there.end - there.first != span.end - span.first and _GOES_ON.match(self.text, span.end) is None


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
