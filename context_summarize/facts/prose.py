"""What the prose of a summary tells already: values near the words that say what they are."""

from __future__ import annotations

import re

from context_summarize.facts.fact import Fact
from context_summarize.facts.notes import FIGURE, telling_words
from context_summarize.facts.patterns import holds, one_line

NEAR = 200
"""Characters on each side of a value in which the words that say what it is are looked for."""
_PLACES = 4
"""Places of a value that are looked at."""
_PART = re.compile(r"\w+")


class Prose:
    """A text that is asked for many values."""

    def __init__(self, text: str) -> None:
        self._text = one_line(text)
        self._lower = self._text.lower()
        self._parts = frozenset(_PART.findall(self._text))

    def holds(self, value: str) -> bool:
        """True if the text holds the value as a whole."""
        return self._parts.issuperset(_PART.findall(value)) and holds(self._text, value)

    def tells(self, fact: Fact) -> bool:
        """True if the text holds the fact, near half of the words that say what it is.

        A note is told where its figures are, near three quarters of its words.
        """
        if fact.kind == "note":
            figures = FIGURE.findall(fact.value)
            return all(map(self.holds, figures)) and self._is_near(
                figures[0] if figures else fact.value, telling_words(fact.value), 0.75
            )
        value = one_line(fact.value)
        if not self.holds(value):
            return False
        words = telling_words(f"{fact.about.replace(value, ' ')} {fact.label}")
        return not words or self._is_near(value, words, 0.5)

    def _is_near(self, value: str, words: frozenset[str], share: float) -> bool:
        at = self._text.find(value)
        for _ in range(_PLACES):
            if at < 0:
                return False
            around = self._lower[max(0, at - NEAR) : at + len(value) + NEAR]
            if sum(word in around for word in words) >= share * len(words):
                return True
            at = self._text.find(value, at + 1)
        return False
