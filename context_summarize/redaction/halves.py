"""Tokens with a prefix of their own that a line's end, or the end of a content block, stands within."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.redaction.needed import formats_in
from context_summarize.redaction.spans import Span
from context_summarize.redaction.values import is_mixed

_TORN = re.compile(
    r"(?<![\w+/=.~:-])(?P<left>[\w+/=.~:-]{3,200}+)(?:\r?\n|\\{1,4}n){1,2}(?=(?P<right>[\w+/=.~:-]{4,400}+))"
)
"""The last word of a line and the first one of the next; between two blocks there may be an empty line."""


def halves(text: str) -> Iterator[Span]:
    """Places of torn tokens, in order; their first part must hold the prefix. Whole tokens are gone by then."""
    end = 0
    for torn in _TORN.finditer(text):
        word = torn["left"] + torn["right"]
        if torn.start() < end or not is_mixed(word):
            continue
        found = _across(word, len(torn["left"]))
        if found is not None:
            end = torn.start("right") + found.end - len(torn["left"])
            yield Span(torn.start() + found.first, end, found.kind)


def _across(word: str, edge: int) -> Span | None:
    """The token that begins before the edge of a word and ends after it."""
    for known in formats_in(word, len(word)):
        if "secret" in known.pattern.groupindex:
            continue  # it needs a word before it
        for found in known.places(word):
            if found.first < edge < found.end and is_mixed(word[found.first : found.end]):
                return found
    return None
