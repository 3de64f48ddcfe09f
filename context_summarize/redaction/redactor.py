"""Takes secrets of well-known formats, and what the user's own patterns find, out of a text. Pure, linear, idempotent.

Shapes with a prefix of their own are taken as they are. A value without one (a password, a key of some service) is
taken where a word before it says what it is and it looks like a secret: long, mixed, no placeholder, no code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from context_summarize.errors import ConfigError
from context_summarize.redaction.assigned import NAMES, without_assigned
from context_summarize.redaction.formats import FORMATS, Format, without_pem_tails
from context_summarize.redaction.marks import MARK, OWN, mark


def _applied(rule: Format, text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        group = "secret" if "secret" in rule.pattern.groupindex else 0
        if rule.check is not None and not rule.check(found[group]):
            return found[0]
        first, end = (at - found.start() for at in found.span(group))
        return f"{found[0][:first]}{mark(rule.kind)}{found[0][end:]}"

    return rule.pattern.sub(replaced, text)


_WORDS = tuple((word, at) for at, rule in enumerate(FORMATS) for word in rule.needs)
"""Words of which a text must hold one, each with the place of its rule."""


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
    """Where an own pattern matches; what is a mark already stays one."""
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
            f"redact: {pattern!r} is no regular expression ({error}); correct it, or escape its special characters "
            "with a backslash"
        ) from None
    if compiled.match(""):
        raise ConfigError(f"redact: {pattern!r} matches the empty text; make it ask for at least one character")
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
    """What the setting `redact` asks for: None for false, known formats for true, those and own patterns for a list.

    Each secret becomes `[redacted: KIND]`. Own patterns are Python regular expressions, searched without flags (write
    `(?i)` for either case); that they take linear time is the user's care.

    Raises:
        ConfigError: a pattern is no regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return _redactor(()) if setting else None
    return _redactor(tuple(setting))


Redact = Callable[[str], str]
