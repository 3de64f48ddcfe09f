"""A text as it is meant, without colour codes, escapes and continued lines, and where each of its places stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from context_summarize.redaction.spans import Span

_ESC = r"(?:\x1b|\\{1,4}(?:x1[bB]|u001[bB]|033|e)|\^\[|\u241b)"
_COLOUR = (
    rf"{_ESC}\[[0-?]{{0,24}}[ -/]{{0,2}}[@-~]|{_ESC}\]\d{{1,4}};[^;\x07\x1b\s]{{0,40}};|{_ESC}\\|\x07"
    r"|\[\d{0,3}(?:;\d{1,3}){0,5}m|[\u00ad\u200b-\u200d\u2060\ufeff]"
)
_CONTINUED = (
    r"\\\r?\n[ \t]{0,40}"  # a shell's
    r"|(?<=\S)[\"']\s{0,4}[+.\\]?[ \t]{0,4}\r?\n[ \t]{0,40}(?:[+.][ \t]{0,4})?[\"'](?=[\w+/=.-]{8})"  # two literals
    # a token that a terminal or an editor has wrapped: its rest is all that the next line holds
    r"|(?<=[\w+/=.-]{40})\r?\n(?=(?=[\w+/.-]{0,200}\d)(?=[\w+/.-]{0,200}[A-Za-z])[\w+/.-]{8,200}+={0,2}(?:\s{0,4}\Z|\r?\n|[\"'`]))"
)
_PERCENT = r"%(?:25){0,4}(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
_ENTITY = (
    r"&(?:amp;){0,4}(?:(?P<named>quot|apos|lt|gt|nbsp|amp)|\#(?P<number>\d{1,3})"
    r"|\#[xX]0{0,4}(?P<hex>[0-9a-fA-F]{1,2}));"
)
_ESCAPE = r"\\{1,8}(?:(?:u00|x)(?P<escape>[2-7][0-9a-fA-F])|(?P<slash>/))"
_PRINTABLE = r"=(?P<printable>3D|22|20|27|2D|5F)"
_NAMED = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "nbsp": " ", "amp": "&"}

_CODED = f"{_PERCENT}|{_ENTITY}|{_ESCAPE}|{_PRINTABLE}"
_JOINED = re.compile(f"(?P<colour>{_COLOUR})|(?P<continued>{_CONTINUED})|{_CODED}")
_SPACED = re.compile(f"(?P<colour>{_COLOUR})|{_CODED}")
_HINTS = (
    ("\x1b", None), ("%", re.compile("%[0-9A-Fa-f]{2}")), ("\\u00", None), ("\\x", None), ("\\033[", None),
    ("\\e[", None),
    ("&", re.compile(r"&(?:quot|apos|lt|gt|nbsp|amp|\#[xX]?[0-9a-fA-F]{1,7});")), ("\\/", None), ("\\\n", None),
    ("\\\r\n", None), ("=3D", None), ("^[[", None), ("\u241b", None),
    ("[", re.compile(r"\[\d{0,3}(?:;\d{1,3}){0,5}m")),
    ("\n", re.compile(r"\n(?=[\w+/=.-]{8})(?<=[\w+/=.-]{39}[\w+/=.\r-]\n)")),
    ("\n", re.compile(r"[\"'][ \t+.\\]{0,6}\r?\n[ \t+.]{0,40}[\"'](?=[\w+/=.-]{8})")),
)  # fmt: skip
"""A text that needs a view of its own holds one of these strings, and, where there is one, a match of the pattern."""
_GOES_ON = re.compile(r"[\w-]|\.{1,2}\w")
"""Follows a match that ends within another token, which begins on the next line."""
_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")


@dataclass(frozen=True, slots=True)
class View:
    """A text with some of its places replaced, each by one character or by none."""

    text: str
    _starts: list[int]
    """Where each part begins in the view. A part is a run of the original or what stands for one place of it."""
    _places: list[tuple[int, int, bool]]
    """Begin and end of each part in the original, and whether it is a run of it."""

    def back(self, span: Span) -> Span:
        """The span in the original. What was taken out at its ends stays outside."""
        return Span(self._original(span.first)[0], self._original(span.end - 1)[1], span.kind)

    def is_joined(self, span: Span) -> bool:
        """True for a whole token within which something stands in the original that the view does not show."""
        first, end = self._original(span.first)[0], self._original(span.end - 1)[1]
        return end - first != span.end - span.first and _GOES_ON.match(self.text, span.end) is None

    def _original(self, at: int) -> tuple[int, int]:
        part = bisect_right(self._starts, at) - 1
        first, end, is_run = self._places[part]
        place = first + at - self._starts[part]
        return (place, place + 1) if is_run else (first, end)


def _view(text: str, joined: bool) -> View:
    out: list[str] = []
    starts: list[int] = []
    places: list[tuple[int, int, bool]] = []
    at = length = 0

    def part(piece: str, first: int, end: int, is_run: bool) -> None:
        nonlocal length
        if piece:
            out.append(piece)
            starts.append(length)
            places.append((first, end, is_run))
            length += len(piece)

    for found in (_JOINED if joined else _SPACED).finditer(text):
        part(text[at : found.start()], at, found.start(), True)
        part(_plain(found, "" if joined else " "), found.start(), found.end(), False)
        at = found.end()
    part(text[at:], at, len(text), True)
    return View("".join(out), starts, places)


def _plain(found: re.Match[str], colour: str) -> str:
    """What a match stands for: one character or none."""
    name = found.lastgroup
    value = found[name] if name else ""
    if name == "colour":
        return colour
    if name == "continued":
        return ""
    if name == "named":
        return _NAMED[value]
    if name == "slash":
        return "/"
    char = chr(int(value, 10 if name == "number" else 16))
    return char if char.isascii() and (char.isprintable() or char in "\t\n\r") else " "


def view_of(text: str, *, joined: bool) -> View | None:
    """The text without its disguises; None where it is as it is meant.

    Args:
        joined: as if colour codes and the ends of continued lines were not there, for secrets that they stand within;
            else with a space for each colour code, for secrets that begin or end at one.
    """
    return _view(text, joined) if _is_disguised(text) else None


def _is_disguised(text: str) -> bool:
    if not text.isascii() and _UNSEEN.search(text):
        return True
    return any(hint in text and (pattern is None or pattern.search(text)) for hint, pattern in _HINTS)
