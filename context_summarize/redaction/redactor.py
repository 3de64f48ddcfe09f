"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Pure, linear, idempotent.

A format with its own prefix is enough. A value without one (a password, a key of some service) is removed if a word
before it says what it is and the value looks like a secret: long, mixed, not a placeholder, not code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from context_summarize.errors import ConfigError
from context_summarize.redaction.assigned import NAMES, without_assigned
from context_summarize.redaction.formats import FORMATS, Format, without_pem_tails
from context_summarize.redaction.marks import MARK, OWN, mark


def _applied(known: Format, text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        group = "secret" if "secret" in known.pattern.groupindex else 0
        if known.check is not None and not known.check(found[group]):
            return found[0]
        first, end = (at - found.start() for at in found.span(group))
        return f"{found[0][:first]}{mark(known.kind)}{found[0][end:]}"

    return known.pattern.sub(replaced, text)


_WORDS = tuple((word, at) for at, known in enumerate(FORMATS) for word in known.needs)
"""The needed words of all formats, each with the index of its format."""


def _known(text: str) -> str:
    """The text without secrets of known formats."""
    low = text.lower()
    for at in sorted({at for word, at in _WORDS if word in low}):
        text = _applied(FORMATS[at], text)
    if "-----end" in low:
        text = without_pem_tails(text)
    if any(name in low for name in NAMES):
        text = without_assigned(text)
    return text


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Spans where the user's own pattern matches, outside existing marks."""
    at = 0
    mark = MARK.search(text)
    while found := pattern.search(text, at):
        while mark is not None and mark.end() <= found.start():
            mark = MARK.search(text, mark.end())
        if mark is not None and mark.start() <= found.start():
            at = mark.end()
        elif found.end() > found.start():
            yield found.span()
            at = found.end()
        else:
            at = found.end() + 1
        if at > len(text):
            return


def _own(pattern: re.Pattern[str], text: str) -> str:
    out, at = [], 0
    for first, end in _matches(pattern, text):
        out += [text[at:first], mark(OWN)]
        at = end
    return "".join([*out, text[at:]])


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"redact: {pattern!r} is not a regular expression ({error}); correct it, or escape its special characters "
            "with a backslash"
        ) from None
    if compiled.match(""):
        raise ConfigError(f"redact: {pattern!r} matches the empty text; change it to match at least one character")
    return compiled


@lru_cache(maxsize=32)
def _redactor(patterns: tuple[str, ...]) -> Callable[[str], str]:
    own = [_compiled(pattern) for pattern in patterns]

    def redact(text: str) -> str:
        clean = _known(text)
        for pattern in own:
            clean = _own(pattern, clean)
        return clean

    return redact


def build_redactor(setting: bool | Sequence[str]) -> Callable[[str], str] | None:
    """The redactor for the setting `redact`: None for false; known formats for true; for a list also its patterns.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). The user must make sure that they take linear time.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))


Redact = Callable[[str], str]
