"""Removes secrets of well-known formats, and matches of the user's own patterns, from a text. Linear, idempotent.

A value in a format with its own prefix is always removed. A value without one (a password, a key of some service) is
removed if a word before it, or the heading of its column, says what it is: a password always, a key only if it looks
random. A text with escapes, colour codes or continued lines is searched without them.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from context_summarize.errors import legible
from context_summarize.redaction.columns import columns
from context_summarize.redaction.formats import KEY, SHORTEST, TOKENS, Rule, Span, Table, decoded, keys, replaced
from context_summarize.redaction.own import Redactor
from context_summarize.redaction.values import values
from context_summarize.redaction.views import ESCAPED, JOINED, SPACED, View
from context_summarize.redaction.words import STEMS

Redact = Callable[[str], str]

_PLACED = Table("placed", "{}", (STEMS, columns), (STEMS, values))


def _rules(text: str) -> Iterator[Rule]:
    """Yields the rules that may find something in the text, in their order."""
    words = "\n".join(word for word in text.split() if len(word) >= SHORTEST)
    yield keys
    yield from TOKENS.rules(words)
    yield from _PLACED.rules(text.lower())
    if any(True for _ in decoded(words)):
        yield _encoded


def _encoded(text: str) -> Iterator[Span]:
    """Finds words in base64 that hold a secret."""
    for first, end, meant in decoded(text):
        if any(True for rule in _rules(meant) for _ in rule(meant)):
            yield Span(first, end, "secret")


def _blank(span: Span) -> str:
    """Returns an empty mark as long as the span, so that later positions do not move."""
    length = span.end - span.first
    return "[" + " " * (length - 2) + "]" if length > 1 else "]"


def _in_turn(rules: Iterable[Rule], text: str) -> Iterator[Span]:
    """Finds secrets. A rule does not see what earlier rules have found."""
    for rule in rules:
        found = list(rule(text))
        text = replaced(text, found, _blank) if found else text
        yield from found


def _disguised(text: str, joined: bool) -> Iterator[Span]:
    """Finds secrets once escapes and colour codes are gone; if `joined`, only those that a code or line end split."""
    view = View(text, JOINED if joined and "\n" in text else SPACED, "" if joined else " ")
    if view.text != text:
        for one in _in_turn(_rules(view.text), view.text):
            # Private keys are not searched here: the joined view has no line breaks, and the rows of a key need them.
            if not joined or (one.kind != KEY and view.is_joined(one)):
                yield view.back(one)


def redact_known(text: str) -> str:
    """Returns the text with a mark in place of each secret, but for those of the user's own patterns."""
    plain = View(text, ESCAPED)
    # Split secrets first, and the text as it is last.
    known = (partial(_disguised, joined=True), partial(_disguised, joined=False))
    return replaced(text, [*map(plain.back, _in_turn([*known, *_rules(plain.text)], plain.text))])


def build_redactor(setting: bool | Sequence[str]) -> Redact | None:
    """Returns the redactor for `redact`: None for false; `redact_known` for true; for a list one for one session.

    Each secret becomes `[redacted: KIND]`. The user's own patterns are Python regular expressions, searched without
    flags (write `(?i)` to ignore case). Once they have been too slow, each text is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """
    if isinstance(setting, bool):
        return redact_known if setting else None
    return Redactor(setting, redact_known)


def withholds(redact: Redact | None) -> bool:
    """Returns True once the user's own patterns were too slow: nothing can be summarised any more."""
    return isinstance(redact, Redactor) and redact.withholds


def traceback_of(error: BaseException, setting: bool | Sequence[str] = True) -> str:
    """Returns the traceback of an error with its causes, on several lines, without secrets of known formats.

    A provider's or a hook's error may quote a request with its key, and a log is read by others than a session is.

    Args:
        setting: the setting `redact`: its own patterns are removed too. `False` removes the known formats all the same.
    """
    text = "".join(traceback.format_exception(error)).rstrip()
    redact = redact_known if isinstance(setting, bool) else Redactor(setting, redact_known, logging.DEBUG)
    return legible(redact(text))
