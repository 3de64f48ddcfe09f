"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Linear, idempotent.

A format with its own prefix is enough. A value without one (a password, a key of some service) is removed if a word
before it says what it is and the value looks like a secret: long, mixed, not a placeholder, not code. A text
with colour codes, escapes or continued lines is also searched without them.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from html import unescape

from context_summarize.redaction.assigned import NAMES, assigned
from context_summarize.redaction.formats import PLACED, SHORTEST, TOKENS, Rule, Span, is_mixed, replaced
from context_summarize.redaction.keys import KIND, STEMS, keys
from context_summarize.redaction.own import OwnPatterns

Redact = Callable[[str], str]

_WINDOW = 32_000
"""Characters of a long text that are searched at once."""
_MORE = 16_000
"""Characters after them that are looked at as well: a secret that is no longer is seen whole by one window."""
_TORN = re.compile(
    r"(?<![\w+/=.~:-])(?P<left>[\w+/=.~:-]{3,200}+)(?:\r?\n|\\{1,4}n){1,2}(?=(?P<right>[\w+/=.~:-]{4,400}+))"
)
"""The last word of a line and the first one of the next; between two blocks there may be an empty line."""


def _holds(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def _rules(text: str) -> Iterator[Rule]:
    """The rules that may find something in the text, in their order."""
    low = text.lower()
    words = [word for word in text.split() if len(word) >= SHORTEST]
    if words and (_holds(text, ("PRIVATE KEY-----", *STEMS)) or max(map(len, words)) >= 64):
        yield keys
    yield from TOKENS.rules("\n".join(words))
    yield from PLACED.rules(low)
    if _holds(low, NAMES):
        yield assigned


def _blank(text: str, spans: Sequence[Span]) -> str:
    """The text with brackets and blanks in place of each span, as a mark has them; all places stay where they are."""
    for span in spans:
        length = span.end - span.first
        text = text[: span.first] + f"[{' ' * (length - 2)}]"[-length:] + text[span.end :]
    return text


def _in_turn(rules: Iterable[Rule], text: str) -> Iterator[Span]:
    """Places of secrets. A rule does not see what earlier ones have found."""
    for rule in rules:
        found = list(rule(text))
        text = _blank(text, found)
        yield from found


def _as_it_stands(text: str) -> Iterator[Span]:
    return _in_turn(_rules(text), text)


def _disguised(text: str, joined: bool) -> Iterator[Span]:
    """Places of secrets that a view of the text shows; in the joined one only those that need it."""
    if view := view_of(text, joined=joined):
        for one in _as_it_stands(view.text):
            # The rows of a key need their line breaks, which the joined view takes for ends of continued lines.
            if not joined or (one.kind != KIND and view.is_joined(one)):
                yield view.back(one)


def _torn(text: str) -> Iterator[Span]:
    """Places of tokens that the end of a line stands within; the first part holds the prefix."""
    end = 0
    for torn in _TORN.finditer(text) if _holds(text, ("\n", "\\n")) else ():
        word, edge = torn["left"] + torn["right"], len(torn["left"])
        if torn.start() < end or not is_mixed(word):
            continue
        for found in (span for rule in TOKENS.rules(word) for span in rule(word)):
            if found.first < edge < found.end and is_mixed(word[found.first : found.end]):
                end = torn.start("right") + found.end - edge
                yield Span(torn.start() + found.first, end, found.kind)
                break


_KNOWN: tuple[Rule, ...] = (partial(_disguised, joined=True), partial(_disguised, joined=False), _as_it_stands, _torn)
"""What needs no disguise is found where the words around it are as meant; torn tokens once whole ones are gone."""


def _without_known(text: str) -> str:
    """The text with a mark in place of each secret of a known format, searched in windows."""
    spans: list[Span] = []
    for at in range(0, max(1, len(text) - _MORE), _WINDOW):
        window = text[at : at + _WINDOW + _MORE]
        is_plain = "\n" not in window and "\\n" not in window and _SPACED.search(window) is None
        found = _as_it_stands(window) if is_plain else _in_turn(_KNOWN, window)
        spans += [Span(at + one.first, at + one.end, one.kind) for one in found]
    out: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.first, -span.end)):
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
    """The redactor for the setting `redact`: None for false; known formats for true; for a list also its patterns.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). A text that they take longer than a second for is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))


def traceback_of(error: BaseException, setting: bool | Sequence[str] = True) -> str:
    """The traceback of an error with its causes, on several lines, without secrets of known formats.

    A provider's or a hook's error may quote a request with its key, and a log is read by others than a session is.

    Args:
        setting: the setting `redact`: the user's own patterns are taken out too, and `False` leaves the known formats.
    """
    told = "".join(traceback.format_exception(error)).rstrip()
    redact = build_redactor(setting or True)
    return redact(told) if redact else told


# --- a text as it is meant --------------------------------------------------------------------------------------------

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
    """A text without colour codes, escapes and continued lines: each is one character here, or none."""

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
