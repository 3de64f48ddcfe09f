"""A text as it is meant, without colour codes, escapes and continued lines, and where each of its places stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    r"%(?:25){0,4}(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
    r"|&(?:amp;){0,4}(?:(?P<named>quot|apos|lt|gt|nbsp|amp)|\#(?P<number>\d{1,3})|\#[xX]0{0,4}(?P<hex>[0-9a-fA-F]{1,2}));"
    r"|\\{1,8}(?:(?:u00|x)(?P<escape>[2-7][0-9a-fA-F])|(?P<slash>/))"
    r"|=(?P<printable>3D|22|20|27|2D|5F)"
)
# Few places begin with a character that may be meant otherwise; the others are passed over quickly.
_SIGNS = r"\x1b\\^\u241b\x07\[\u00ad\u200b-\u200d\u2060\ufeff%&="
_JOINED = re.compile(rf"(?=[{_SIGNS}\r\n\"'])(?:{_COLOUR}|{_CONTINUED}|{_CODED})")
_SPACED = re.compile(rf"(?=[{_SIGNS}])(?:{_COLOUR}|{_CODED})")
_NAMED = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "nbsp": " ", "amp": "&", "/": "/"}
_GOES_ON = re.compile(r"[\w-]|\.{1,2}\w")
"""Follows a match that ends within another token, which begins on the next line."""


@dataclass(frozen=True, slots=True)
class View:
    """A text with some of its places replaced, each by one character or by none."""

    text: str
    _firsts: list[int]
    _ends: list[int]
    """Where each character of the view begins and ends in the original."""

    def back(self, span: Span) -> Span:
        """The span in the original. What was taken out at its ends stays outside."""
        return Span(self._firsts[span.first], self._ends[span.end - 1], span.kind)

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
    ends: list[int] = []
    at = 0
    for found in (_JOINED if joined else _SPACED).finditer(text):
        plain = _plain(found, "" if joined else " ")
        out += [text[at : found.start()], plain]
        firsts += [*range(at, found.start()), *([found.start()] if plain else [])]
        ends += [*range(at + 1, found.start() + 1), *([found.end()] if plain else [])]
        at = found.end()
    if not at:
        return None
    rest = range(at, len(text) + 1)
    return View("".join([*out, text[at:]]), [*firsts, *rest[:-1]], [*ends, *rest[1:]])


def _plain(found: re.Match[str], colour: str) -> str:
    """What a match stands for: one character or none."""
    name = found.lastgroup or ""
    value = found[name]
    if name in ("colour", "continued"):
        return colour if name == "colour" else ""
    if name in ("named", "slash"):
        return _NAMED[value]
    char = chr(int(value, 10 if name == "number" else 16))
    return char if char.isascii() and (char.isprintable() or char in "\t\n\r") else " "
