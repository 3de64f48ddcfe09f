"""Remarks: sentences without a figure, those first that say most for their length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from context_summarize.background import Steps
from context_summarize.facts.fact import Fact
from context_summarize.facts.notes import FIGURE, telling_words

_SHORTEST, _LONGEST = 20, 240
"""Characters of a remark."""
_A_STEP = 40
"""Sentences that are weighed in one step."""
_NAME = re.compile(r"(?<=[^\W_][,;:'’] |[^\W_][^\W_] )[^\W\d_a-z][^\W\d_]+")
_TIME = re.compile(
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|last|next|ago|(?:week|month|year|weekend|(?:mon|tues|wednes|thurs|fri|"
    r"satur|sun)day)s?)\b"
)
_MARK = 2
"""What a name, a figure or a word of time counts, where a word that no other sentence holds counts 1."""
_SHORT = 8
"""Words that every sentence is longer than it is, or the shortest ones would always say most."""


def is_remark(fact: Fact) -> bool:
    """True for a note without a figure: it is a sentence as it was said."""
    return fact.kind == "note" and not FIGURE.search(fact.value)


def is_worth_keeping(sentence: str) -> bool:
    """True for a sentence of the length of a remark."""
    return _SHORTEST <= len(sentence) <= _LONGEST


def remarks_of(facts: Sequence[Fact]) -> Steps[list[Fact]]:
    """The remarks among these facts, the best first."""
    found = [fact for fact in facts if is_remark(fact)]
    best = yield from best_steps([fact.value for fact in found])
    return [found[at] for at in best]


def best_steps(sentences: Sequence[str]) -> Steps[list[int]]:
    """The sentences' places, those first that say most for their length; on a tie the later one.

    A telling word counts less the more of these sentences hold it, so what is said again and again says little.
    """
    frequency: Counter[str] = Counter()
    for at, sentence in enumerate(sentences):
        frequency.update(telling_words(sentence))
        if at % _A_STEP == 0:
            yield
    worth: list[float] = []
    for at, sentence in enumerate(sentences):
        worth.append(_worth(sentence, frequency))
        if at % _A_STEP == 0:
            yield
    return sorted(range(len(sentences)), key=lambda at: (-worth[at], -at))


def _worth(sentence: str, frequency: Counter[str]) -> float:
    rare = sum(1 / frequency[word] for word in sorted(telling_words(sentence)))
    marks = len({*_NAME.findall(sentence)}) + len(FIGURE.findall(sentence)) + len(_TIME.findall(sentence))
    return (rare + _MARK * marks) / (len(sentence.split()) + _SHORT)
