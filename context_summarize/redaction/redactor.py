"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Linear, idempotent.

A format with its own prefix is enough. A value without one (a password, a key of some service) is removed if a word
before it says what it is and the value looks like a secret: long, mixed, not a placeholder, not code. A text
with colour codes, escapes or continued lines is also searched without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from context_summarize.background import Steps, finished
from context_summarize.redaction.assigned import NAMES, assigned
from context_summarize.redaction.cookies import SESSIONS, cookies, sessions
from context_summarize.redaction.halves import halves
from context_summarize.redaction.keys import blocks, encoded, middles, tails
from context_summarize.redaction.needed import formats_in
from context_summarize.redaction.own import OwnPatterns
from context_summarize.redaction.spans import Span, added, in_order, replaced
from context_summarize.redaction.views import view_of

Redact = Callable[[str], str]

_WINDOW = 32_000
"""Characters of a long text that are searched at once."""
_AROUND = 8_000
"""Characters before and after them that are looked at as well: no rule looks further back."""
_FAR = 64_000
"""Characters after them that are looked at where a secret goes on there."""


def _holds(low: str, *words: str) -> bool:
    return any(word in low for word in words)


def _rules(text: str) -> Iterator[Callable[[str], Iterator[Span]]]:
    """The rules that may find something in the text, in their order."""
    low = text.lower()
    longest = len(max(text.split(), key=len, default=""))
    yield blocks
    yield encoded
    for known in formats_in(text, longest):
        yield known.places
    if _holds(low, "-----end"):
        yield tails
    if longest >= 64:
        yield middles
    if _holds(low, "cookie", " -b "):
        yield cookies
    if _holds(low, *SESSIONS):
        yield sessions
    if _holds(low, *NAMES):
        yield assigned


def _secrets(text: str) -> Steps[list[Span]]:
    """Places of secrets of known formats, a rule a step. A rule sees marks in place of what earlier ones have found."""
    spans: list[Span] = []
    clean = text
    for rule in _rules(text):
        if found := list(rule(clean)):
            spans = added(spans, found)
            clean = replaced(text, spans)
        yield
    return spans


def _known(text: str) -> Steps[list[Span]]:
    """Places of secrets of known formats, also under a disguise."""
    spans: list[Span] = []
    clean = text
    for joined in (True, False):
        view = view_of(clean, joined=joined)
        yield
        if view is not None:
            # What does not need the joined view is found later, where the words around it are as they are meant.
            secrets = yield from _secrets(view.text)
            found = [span for span in secrets if not joined or view.is_joined(span)]
            spans = added(spans, in_order(map(view.back, found)))
            clean = replaced(text, spans)
    spans = added(spans, (yield from _secrets(clean)))
    yield
    return added(spans, list(halves(replaced(text, spans))))


def _known_in_windows(text: str) -> Steps[list[Span]]:
    """The same, in windows; a short text is one window.

    A window shows what stands around its own part, and more of it where a secret goes on after that part.
    """
    spans: list[Span] = []
    at = 0
    while at < len(text):
        end = min(at + _WINDOW, len(text))
        found = yield from _known_within(text, at, end, _AROUND)
        if _reached(found, end) != end:
            found = yield from _known_within(text, at, end, _FAR)
        spans += found
        at = _reached(found, end)
    return spans


def _known_within(text: str, at: int, end: int, after: int) -> Steps[list[Span]]:
    """What begins in this part of the text, or goes on in it, seen with what stands around the part."""
    first = max(0, at - _AROUND)
    known = yield from _known(text[first : end + after])
    found = [Span(one.first + first, one.end + first, one.kind) for one in known]
    return [Span(max(one.first, at), one.end, one.kind) for one in found if one.end > at and one.first < end]


def _reached(found: Sequence[Span], end: int) -> int:
    return max([end, *(one.end for one in found)])


class Redactor:
    """Takes secrets out of texts: those of known formats, and what the user's own patterns match."""

    def __init__(self, own: OwnPatterns) -> None:
        self._own = own

    def __call__(self, text: str) -> str:
        """The text with a mark in place of each secret."""
        return finished(self.steps(text))

    def steps(self, text: str) -> Steps[str]:
        """The same in steps of a hundredth of a second; the user's own patterns take a step for each match."""
        clean = replaced(text, (yield from _known_in_windows(text)))
        return (yield from self._own.steps(clean))


def redact_steps(text: str, redact: Redact | None) -> Steps[str]:
    """The text without secrets, in steps where the redactor has them; as it is without a redactor."""
    if isinstance(redact, Redactor):
        return (yield from redact.steps(text))
    return redact(text) if redact else text


@lru_cache(maxsize=32)
def _redactor(patterns: tuple[str, ...]) -> Redactor:
    return Redactor(OwnPatterns(patterns))


def build_redactor(setting: bool | Sequence[str]) -> Redactor | None:
    """The redactor for the setting `redact`: None for false; known formats for true; for a list also its patterns.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). A text that they take longer than a second for is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))
