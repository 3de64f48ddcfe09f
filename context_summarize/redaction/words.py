"""The room's tables: patterns, and telling words by language, which name a secret or join it to its name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

Patterns = dict[str, re.Pattern[str]]


def read(name: str) -> dict[str, Any]:
    """Returns a table of `data/`."""
    return tomllib.loads((resources.files("context_summarize.redaction") / f"data/{name}.toml").read_text("utf-8"))


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """Returns the pattern on one line, with the parts that it names in angle brackets."""
    lines = "".join(map(str.lstrip, pattern.split("\n")))
    return re.sub("<([A-Z0-9_]+)>", lambda found: parts[found[1]], lines)


def parts_of(table: Mapping[str, str]) -> dict[str, str]:
    """Returns the parts of patterns; each may name those above it."""
    parts: dict[str, str] = {}
    for name, part in table.items():
        parts[name] = filled(part, parts)
    return parts


_TABLES = read("shapes")
PARTS = parts_of(_TABLES["parts"])


def shapes(place: str) -> Patterns:
    """Returns the patterns that a file matches where it stands (`FILE.at`), or looks for (`FILE.in`)."""
    file, way = place.split(".")
    return {name: re.compile(filled(text, PARTS)) for name, text in _TABLES[file][way].items()}


_LANGUAGES = read("words")
CJK = ("zh", "ja", "ko")
"""Languages that put no blank between words."""
STEMS = sorted({stem.replace("~", gap) for stem in _LANGUAGES.pop("stems").split() for gap in ("", " ", "_", "-")})
"""A text that, in lower case, holds none of these holds no telling word."""
_STEM = re.compile("|".join(map(re.escape, STEMS)))


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


_MORE = {
    name: {part: _any(words[part.lower()]) for part in ("BETWEEN", "JOINTS")} for name, words in _LANGUAGES.items()
}
_OPENING = r"(?=[!-~\u201c\u300c\u300e])"
JOINTS = {
    name: re.compile(filled(_TABLES["joint"], {**PARTS, **more, "OPENING": _OPENING if name in CJK else "(?!)"}))
    for name, more in _MORE.items()
}
"""The link between a word of each language and its value: `is`, a sign, or little."""


def _ordinary(*columns: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)\W{{0,8}}+(?:{_of_all(False, *columns)}(?!\w)|[^\n]{{0,12}}?{_of_all(True, 'ordinary')})")


_ORDINARY = _ordinary("following", "ordinary")
_PREDICATE = _ordinary("following", "ordinary", "endings")


def is_ordinary(value: str) -> bool:
    """Returns True for a value that begins with an ordinary word."""
    return _ORDINARY.match(value) is not None


def is_predicate(value: str) -> bool:
    """Returns True for one that does so after `is`, also if only its ending tells."""
    return _PREDICATE.match(value) is not None
