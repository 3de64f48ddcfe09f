"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Linear, idempotent.

A format with its own prefix is enough. A value without one (a password, a key of some service) is removed if a word
before it says what it is and the value looks like a secret: long, mixed, not a placeholder, not code. A text
with colour codes, escapes or continued lines is also searched without them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from context_summarize.redaction.assigned import NAMES, assigned
from context_summarize.redaction.cookies import SESSIONS, cookies, sessions
from context_summarize.redaction.formats import FORMATS, Format
from context_summarize.redaction.halves import halves
from context_summarize.redaction.keys import blocks, encoded, middles, tails
from context_summarize.redaction.own import OwnPatterns
from context_summarize.redaction.spans import Span, added, in_order, replaced
from context_summarize.redaction.views import view_of


def _places(known: Format, text: str) -> Iterator[Span]:
    group = "secret" if "secret" in known.pattern.groupindex else 0
    for found in known.pattern.finditer(text):
        if known.check is None or known.check(found[group]):
            yield Span(*found.span(group), known.kind)


_WORDS = sorted(
    ((word, at) for at, known in enumerate(FORMATS) for word in known.needs), key=lambda w: FORMATS[w[1]].run
)
"""The needed words of all formats, each with the index of its format; formats with short runs first."""
_RUNS = [FORMATS[at].run for _, at in _WORDS]


def _rules(text: str) -> Iterator[Callable[[str], Iterator[Span]]]:
    """The rules that may find something in the text, in their order."""
    low = text.lower()
    if "-----begin" in low:
        yield blocks
    longest = max(map(len, text.split()), default=0)
    if longest >= 60:
        yield encoded
    found = {at for word, at in _WORDS[: bisect_right(_RUNS, longest)] if word in (low if word.islower() else text)}
    for at in sorted(found):
        yield lambda text, known=FORMATS[at]: _places(known, text)  # type: ignore[misc]
    if "-----end" in low:
        yield tails
    if longest >= 64:
        yield middles
    if "cookie" in low or " -b " in low:
        yield cookies
    if any(name in low for name in SESSIONS):
        yield sessions
    if any(name in low for name in NAMES):
        yield assigned


def _secrets(text: str) -> list[Span]:
    """Places of secrets of known formats. A rule sees a mark in place of what an earlier one has found."""
    spans: list[Span] = []
    clean = text
    for rule in _rules(text):
        if found := list(rule(clean)):
            spans = added(spans, found)
            clean = replaced(text, spans)
    return spans


def _known(text: str) -> str:
    """The text without secrets of known formats."""
    for joined in (True, False):
        view = view_of(text, joined=joined)
        if view is None:
            break
        # What does not need the joined view is found later, where the words around it are as they are meant.
        spans = [span for span in _secrets(view.text) if not joined or view.is_joined(span)]
        text = replaced(text, in_order(map(view.back, spans)))
    text = replaced(text, _secrets(text))
    return replaced(text, list(halves(text)))


@lru_cache(maxsize=32)
def _redactor(patterns: tuple[str, ...]) -> Callable[[str], str]:
    own = OwnPatterns(patterns)
    return lambda text: own(_known(text))


def build_redactor(setting: bool | Sequence[str]) -> Callable[[str], str] | None:
    """The redactor for the setting `redact`: None for false; known formats for true; for a list also its patterns.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). A text that they take longer than a second for is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))


Redact = Callable[[str], str]
