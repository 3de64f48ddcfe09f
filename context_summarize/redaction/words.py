"""Telling words by language, from `data/words.toml`: what a secret is called, what joins name and value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from context_summarize.redaction.shapes import PARTS, read

_LANGUAGES = read("words")
CJK = ("zh", "ja", "ko")
"""Languages that put no blank between words."""
STEMS = sorted({stem.replace("~", gap) for stem in _LANGUAGES.pop("stems").split() for gap in ("", " ", "_", "-")})
"""A text that, in lower case, holds none of these holds no telling word."""
CODE_LINE = re.compile(rf"[\s+-]*+(?:{'|'.join(_LANGUAGES.pop('code').split())})(?!\w)")
"""Matches at a line of code that begins with a keyword."""
_STEM = re.compile(
    "|".join(f"{first}(?:{'|'.join(s[1:] for s in group)})" for first, group in groupby(STEMS, itemgetter(0)))
)


def _any(words: str) -> str:
    """Returns a pattern for one of the words."""
    words = re.sub(r"(?<!\?)<", r"(?<![^\\W\\d_])", words).replace("~", r"[\s_-]?")
    stems = re.sub(r"-(?=\s|\Z)", r"\\w{0,6}", words).split()
    return f"(?:{'|'.join(stems) or '(?!)'})"


def _of_all(cjk: bool, *columns: str) -> str:
    return _any(" ".join(words[col] for name, words in _LANGUAGES.items() if (name in CJK) == cjk for col in columns))


_TELLING = re.compile(
    "|".join(
        f"(?P<{name}>(?i:{_any(words['passwords'])}))|(?P<{name}_other>(?i:{_any(words['secrets'])}))"
        for name, words in _LANGUAGES.items()
    )
)


def telling(text: str) -> Iterator[re.Match[str]]:
    """Finds words for passwords, in the group of their language, and for other secrets, in one ending with `_other`."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(sign.lower()[0] for sign in text)
    for stem in _STEM.finditer(low):
        if word := _TELLING.match(text, stem.start()):
            yield word


_DASH = r"[\u2013\u2014]|(?<=\S )-(?= )"
_BETWEEN = r"(?:\s{1,2}%s(?:\s[\w.-]{1,20}){0,3}?)?"
_AFTER = rf"{_BETWEEN}(?:(?P<sign>{PARTS['ASSIGNS']})|\s{{0,4}}(?P<prose>{_DASH}|%s):?(?:\s{{1,4}}|%s))"
_OPENING = r"(?=[!-~\u201c\u300c\u300e])"
_JOINT = PARTS["JOINT"].split("@@")
JOINTS = {
    name: re.compile(
        (_AFTER % (*map(_any, (words["between"], words["joints"])), _OPENING if name in CJK else "(?!)")).join(_JOINT)
    )
    for name, words in _LANGUAGES.items()
}
"""The link between a word of each language and its value: `is`, a sign, or little."""


def _ordinary(*columns: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)\W*+(?:{_of_all(False, *columns)}(?!\w)|[^\n]{{0,12}}?{_of_all(True, 'ordinary')})")


ORDINARY = _ordinary("following", "ordinary")
"""Matches at a value that is an ordinary word."""
PREDICATE = _ordinary("following", "ordinary", "endings")
"""Matches at an ordinary word after `is`, also at one that its ending tells."""
FOLLOWS = re.compile(rf"(?i)\s{{0,40}}(?:\Z|[^\w\s(=+/]|\n|{_of_all(True, 'following')})")
"""Matches after a word on its own, in languages without blanks."""
