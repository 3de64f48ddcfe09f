"""How much of a conversation a text still holds, and a summariser that is no model. Pure.

A gold value is *in view* where it stands in the text. It is *near* where at least half of the question's telling words
stand within 300 characters of it: a value without the words that say what it is cannot be used. An instruction is
*kept* where four fifths of its telling words stand within 400 characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

NEAR = 300
"""Characters on either side of a gold value in which the question's words count."""
TOGETHER = 400
"""Characters from the first to the last word of a kept instruction."""
_LONGEST_SENTENCE = 120
"""Tokens; `extract` leaves out longer sentences."""
_STOP_LIST = """
a an and are as at be been by can could did do does for from had has have how i if in into is it its me my of on or our
please should show so some that the their them then there these they this to was we were what when where which who why
will with would you your about after all also any before between during each more most much many than through
"""
_STOP_WORDS = frozenset(_STOP_LIST.split())
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9'.%$:/_-]*[A-Za-z0-9%]|[A-Za-z0-9]")
_GOLD = re.compile(
    r"\$?\d[\d,]*(?:\.\d+)*(?:%|ms|MB|GB|k|K|px|s)?"
    r"|(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2}"
    r"|[A-Za-z_]+\.[A-Za-z_]{2,}|[A-Z]{2,}\d+|v\d+(?:\.\d+)+"
)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Score:
    """What a text holds of one question's gold values."""

    in_view: bool
    """All of them stand in the text."""
    near: bool
    """One of them stands near the question's words."""


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def telling_words(text: str) -> set[str]:
    """The words that say something: three letters or more, no stop words."""
    return {word for word in words(text) if word not in _STOP_WORDS and len(word) > 2}


def gold_values(answer: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Numbers, dates and names of an answer that stand in one of the source texts too, each once, in their order."""
    texts = tuple(sources)
    found = dict.fromkeys(match.group() for match in _GOLD.finditer(answer))
    return tuple(gold for gold in found if any(places(text, gold) for text in texts))


def places(text: str, gold: str) -> list[int]:
    """Where a gold value stands in a text, not as a part of a longer word or number."""
    if gold not in text:  # far faster than the pattern, which begins with no letter
        return []
    return [match.start() for match in re.finditer(rf"(?<![\w.]){re.escape(gold)}(?!\w)", text)]


def score(view: str, question: Set[str], golds: Sequence[str]) -> Score:
    """What a view holds of `golds`; `question` are the question's telling words."""
    found = [places(view, gold) for gold in golds]
    near = any(_is_near(view, at, question) for spots in found for at in spots)
    return Score(all(found), near)


def _is_near(view: str, at: int, question: Set[str]) -> bool:
    around = telling_words(view[max(0, at - NEAR) : at + NEAR])
    return 2 * len(question & around) >= len(question)


def instruction_kept(view: str, instruction: Set[str]) -> bool:
    """True where four fifths of an instruction's telling words stand close together."""
    hits = [(match.start(), match.group().lower()) for match in _WORD.finditer(view)]
    hits = [(at, word) for at, word in hits if word in instruction]
    inside: Counter[str] = Counter()
    first = 0
    for at, word in hits:
        inside[word] += 1
        while at - hits[first][0] > TOGETHER:
            left = hits[first][1]
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            first += 1
        if len(inside) >= 0.8 * len(instruction):
            return True
    return False


def extract(text: str, room: int, count: Callable[[str], int]) -> str:
    """A summary without a model: the sentences whose telling words are most frequent, in their order (Luhn 1958).

    Args:
        room: tokens of the summary.
        count: tokens of a text.
    """
    sentences = [part.strip() for part in _SENTENCE_END.split(text)]
    sentences = [part for part in sentences if len(part) > 20 and not part.startswith(("#", "==="))]
    telling = [telling_words(sentence) for sentence in sentences]
    frequency = Counter(word for found in telling for word in found)

    def weight(at: int) -> float:
        return sum(frequency[word] for word in telling[at]) / (len(words(sentences[at])) + 8)

    chosen: list[int] = []
    for at in sorted(range(len(sentences)), key=weight, reverse=True):
        size = count(sentences[at]) + 1
        if size <= min(_LONGEST_SENTENCE, room):
            chosen.append(at)
            room -= size
    return "\n".join(sentences[at] for at in sorted(chosen)) or text[:200]
