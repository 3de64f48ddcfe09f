"""A text as it is meant, without colour codes, escapes and continued lines, and where each of its places stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from context_summarize.redaction.formats import Span

_ESC = r"(?:\x1b|\\{1,4}(?:x1[bB]|u001[bB]|033|e)|\^\[|\u241b)"
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
    r"|\\{1,8}(?:(?:u00|x)[2-7][0-9a-fA-F]|/)"
    r"|=(?:3D|22|20|27|2D|5F)"
)
# Few places begin with a character that may be meant otherwise; the others are passed over quickly.
_SIGNS = r"\x1b\\^\u241b\x07\[\u00ad\u200b-\u200d\u2060\ufeff%&="
_JOINED = re.compile(rf"(?=[{_SIGNS}\r\n\"'])(?:{_COLOUR}|{_CONTINUED}|{_CODED})")
_SPACED = re.compile(rf"(?=[{_SIGNS}])(?:{_COLOUR}|{_CODED})")
_GOES_ON = re.compile(r"[\w-]|\.{1,2}\w")
"""Follows a match that ends within another token, which begins on the next line."""


@dataclass(frozen=True, slots=True)
class View:
    """A text with some of its places replaced, each by one character or by none."""

    text: str
    _firsts: list[int]
    """Where each character of the view begins in the original."""
    _widths: dict[int, int]
    """How many characters it takes there, if not one."""

    def back(self, span: Span) -> Span:
        """The span in the original. What was taken out at its ends stays outside."""
        last = span.end - 1
        return Span(self._firsts[span.first], self._firsts[last] + self._widths.get(last, 1), span.kind)

    def is_joined(self, span: Span) -> bool:
        """True for a whole token within which something stands in the original that the view does not show."""
        there = self.back(span)
        return there.end - there.first != span.end - span.first and _GOES_ON.match(self.text, span.end) is None


def view_of(text: str, *, joined: bool) -> View | None:
    """The text without its disguises; None where it is as it is meant.

    Args:
        joined: as if colour codes and the ends of continued lines were not there, for secrets that they stand within;
            else with a space for each colour code, for secrets that begin or end at one.
    """
    out: list[str] = []
    firsts: list[int] = []
    widths: dict[int, int] = {}
    at = 0
    for found in (_JOINED if joined and "\n" in text else _SPACED).finditer(text):
        out.append(text[at : found.start()])
        firsts += range(at, found.start())
        if plain := _plain(found, "" if joined else " "):
            widths[len(firsts)] = found.end() - found.start()
            out.append(plain)
            firsts.append(found.start())
        at = found.end()
    return View("".join([*out, text[at:]]), [*firsts, *range(at, len(text))], widths) if at else None


def _plain(found: re.Match[str], gap: str) -> str:
    """What a match stands for: one character or none."""
    if found.lastgroup:
        return gap
    coded = found[0]
    if coded.startswith("&"):
        char = unescape(coded.replace("amp;", ""))
    else:
        char = "/" if coded.endswith("/") else chr(int(coded[-2:], 16))
    return char if char.isascii() and (char.isprintable() or char in "\t\n\r") else " "
