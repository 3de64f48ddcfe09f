"""Finds the parts of a conversation that a text contains: words, exact values, identifiers. Pure, tuned to no data set.

A gold value is *in view* if the text contains it. It is *near* if at least half of the question's significant words
are within 300 characters of it: a value without the words that say what it is cannot be used.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Set

NEAR = 300
"""Characters on either side of a value in which words count."""
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
PATH, NAME, NUMBER = "path", "name", "number"
_SUFFIXES = (
    "py|pyi|tsx?|jsx?|mjs|json|jsonl|md|txt|toml|ya?ml|html?|css|sh|rs|go|c|h|cpp|java|rb|sql|csv|cfg|ini|lock|log|xml"
)
_IDENTIFIER = re.compile(
    rf"(?P<path>(?:[\w.@~+-]*/){{2,}}[\w.@+-]*\w|[\w.@~+-]*/[\w.@+-]+\.\w+|(?<![\w/])/[\w.-]{{3,}}\w"
    rf"|(?<![\w.])[\w-]+(?:\.[\w-]+)*\.(?:{_SUFFIXES})\b(?!\())"
    r"|(?P<number>\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{3,}\w|\b\d{4,}\b)"
    r"|(?P<name>\b[A-Za-z_$][\w$]*\.[A-Za-z_$][\w$.]*\w|\b[a-zA-Z]\w*_\w+|\b[a-z]+[A-Z]\w+|\b(?:[A-Z][a-z]+){2,}\w*)"
)


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def significant_words(text: str) -> set[str]:
    """Returns the significant words: three letters or more, no stop words."""
    return {word for word in words(text) if word not in _STOP_WORDS and len(word) > 2}


@functools.lru_cache(maxsize=4_000)
def identifiers(text: str) -> dict[str, str]:
    """Returns each identifier of a text and its kind: a path, a name of code, or a number, an id with digits."""
    found = {match.group(): str(match.lastgroup) for match in _IDENTIFIER.finditer(text)}
    return {value: kind for value, kind in found.items() if len(value) > 3}


def gold_values(answer: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Returns numbers, dates and names of an answer that a source text contains too, each once, in their order."""
    texts = tuple(sources)
    found = dict.fromkeys(match.group() for match in _GOLD.finditer(answer))
    return tuple(gold for gold in found if any(places(text, gold) for text in texts))


def places(text: str, value: str) -> list[int]:
    """Returns the positions of a value in a text, except as a part of a longer word or number."""
    if value not in text:  # far faster than the pattern, which in turn is faster if it begins with the value
        return []
    told = re.escape(value)
    return [match.start() for match in re.finditer(rf"{told}(?<![\w.]{told})(?!\w)", text)]


def is_near(text: str, value: str, asked: Set[str]) -> bool:
    """Returns True if a value is near half of these words."""
    around = (significant_words(text[max(0, at - NEAR) : at + NEAR]) for at in places(text, value))
    return any(2 * len(asked & found) >= len(asked) for found in around)
