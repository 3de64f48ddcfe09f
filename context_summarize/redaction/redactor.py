"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Linear, idempotent.

A value in a format with its own prefix is always removed. A value without one (a password, a key of some service) is
removed if a word before it, or the heading of its column, says what it is: a password always, a key only if it looks
random. A text with escapes, colour codes or continued lines is searched without them.
"""

from __future__ import annotations

import re
import traceback
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from html import unescape
from operator import attrgetter

from context_summarize.errors import legible
from context_summarize.redaction.values import values
from context_summarize.redaction.columns import columns
from context_summarize.redaction.formats import SHORTEST, TOKENS, Rule, Span, Table, is_mixed, replaced
from context_summarize.redaction.keys import IN_BASE64, KIND, keys
from context_summarize.redaction.own import OwnPatterns
from context_summarize.redaction.words import STEMS

Redact = Callable[[str], str]

_WINDOW = 64_000
"""Characters of a long text that are searched at once."""
_MORE = 16_000
"""A window also shows this many characters after its own. So a secret of at most this length is whole in one window."""
_TORN = re.compile(r"(?<![\w+/=.~:-])(?P<left>[\w+/=.~:-]{3,200}+)(?:\r?\n){1,2}(?=(?P<right>[\w+/=.~:-]{4,400}+))")
"""The last word of a line and the first one of the next; between two blocks there may be an empty line."""


_NAMED = Table("placed", "{}", (STEMS, values))


def _rules(text: str) -> Iterator[Rule]:
    """Yields the rules that may find something in the text, in their order."""
    words = [word for word in text.split() if len(word) >= SHORTEST]
    if any(len(word) >= 64 for word in words) or any(mark in text for mark in ("PRIVATE KEY-----", *IN_BASE64)):
        yield keys
    yield from TOKENS.rules("\n".join(words))
    yield from _NAMED.rules(text.lower())


def _blank(span: Span) -> str:
    """Returns an empty mark as long as the span, so that later positions do not move."""
    length = span.end - span.first
    return "[" + " " * (length - 2) + "]" if length > 1 else "]"


def _in_turn(rules: Iterable[Rule], text: str) -> Iterator[Span]:
    """Finds secrets. A rule does not see what earlier rules have found."""
    for rule in rules:
        found = list(rule(text))
        text = replaced(text, sorted(found, key=attrgetter("first")), _blank) if found else text
        yield from found


def _disguised(text: str, joined: bool) -> Iterator[Span]:
    """Finds secrets once escapes and colour codes are gone; if `joined`, only those that a code or line end split."""
    view = View(text, _JOINED if joined and "\n" in text else _SPACED, "" if joined else " ")
    if view.text != text:
        for one in _in_turn(_rules(view.text), view.text):
            # Private keys are not searched here: the joined view has no line breaks, and the rows of a key need them.
            if not joined or (one.kind != KIND and view.is_joined(one)):
                yield view.back(one)


def _torn(text: str) -> Iterator[Span]:
    """Finds tokens that the end of one line splits."""
    end = 0
    for torn in _TORN.finditer(text) if "\n" in text else ():
        word, edge = torn["left"] + torn["right"], len(torn["left"])
        if torn.start() < end or not is_mixed(word):
            continue
        for found in (span for rule in TOKENS.rules(word) for span in rule(word)):
            if found.first < edge < found.end and is_mixed(word[found.first : found.end]):
                end = torn.start("right") + found.end - edge
                yield Span(torn.start() + found.first, end, found.kind)
                break


def _without_known(text: str) -> str:
    """Returns the text with a mark in place of each secret of a known format, searched in windows."""
    plain = View(text, _ESCAPED)
    rules = list(_rules(plain.text))
    as_it_is = partial(_in_turn, rules)
    # The order: split secrets, the text without codes, the text as it is, and last the tokens that a line end splits.
    known = (partial(_disguised, joined=True), partial(_disguised, joined=False), as_it_is, _torn)
    spans = list(columns(plain.text)) if values in rules else []
    for at in range(0, max(1, len(plain.text) - _MORE), _WINDOW):
        window = plain.text[at : at + _WINDOW + _MORE]
        spans += [Span(at + one.first, at + one.end, one.kind) for one in _in_turn(known, window)]
    out: list[Span] = []
    for span in map(plain.back, sorted(spans, key=lambda span: (span.first, -span.end))):
        if out and span.first < out[-1].end:
            out[-1] = Span(out[-1].first, max(out[-1].end, span.end), out[-1].kind)
        else:
            out.append(span)
    return replaced(text, out)


@lru_cache(maxsize=32)
def _redactor(patterns: tuple[str, ...]) -> Redact:
    own = OwnPatterns(patterns)
    return lambda text: own(_without_known(text))


def build_redactor(setting: bool | Sequence[str]) -> Redact | None:
    """Returns the redactor for `redact`: None for false; known formats for true; for a list also its patterns.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). A text that they take longer than a second for is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))


def traceback_of(error: BaseException, setting: bool | Sequence[str] = True) -> str:
    """Returns the traceback of an error with its causes, on several lines, without secrets of known formats.

    A provider's or a hook's error may quote a request with its key, and a log is read by others than a session is.

    Args:
        setting: the setting `redact`: its own patterns are removed too. `False` removes the known formats all the same.
    """
    text = "".join(traceback.format_exception(error)).rstrip()
    redact = build_redactor(setting or True)
    return legible(redact(text) if redact else text)


_ESCAPED = re.compile(r"\\(?<!\\\\)\\*+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|033|[nrtbfe\"'`/])")
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
_JOINED = re.compile(rf"(?=[{_SIGNS}\\\r\n\"'])(?:{_COLOUR}|{_CONTINUED}|{_CODED})")
_SPACED = re.compile(rf"(?=[{_SIGNS}])(?:{_COLOUR}|{_CODED})")
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
