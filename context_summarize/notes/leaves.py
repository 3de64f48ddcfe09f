"""The short values of JSON, or of Python's way to write it, with the key of each and the identity of its object."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

MOST_READ = 60_000
"""Characters of one row that are read; JSON that is longer has no keys."""
_MOST = 3_000
"""Values of one row."""
_LONGEST = 80
"""Characters; a longer text is prose, and no value of its key."""
_DEEPEST = 12
_REPR = re.compile(r"[\s\[({]*'")
"""How Python's way to write data begins."""
_NO_REPR = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"abfnrtvxuUN0-7\n]")
"""An escape that Python does not know and never writes: its parser would warn of it on the user's screen."""
_NAMES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_IDENTITY = re.compile(r"(?:.*[a-z_-])?(?:_id|Id|ID|-id)|id|ID|uuid|key|name|path")
_EMPTY_NAMES = frozenset({"id", "ids", "uuid", "value", "data", "result", "results", "item", "items", "key"})


class Leaf(NamedTuple):
    """One value."""

    value: str
    about: str
    """Identity of its object, with the name of the key that holds it; "" without one."""
    label: str
    """Its key in plain words; "" for the identity itself."""


def leaves(text: str) -> Iterator[Leaf]:
    """The short values of a text in their order; none of a text that is no data."""
    if text.lstrip()[:1] in ("{", "[") and len(text) <= MOST_READ:
        yield from islice(_within(_parsed(text), "", ""), _MOST)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if not _REPR.match(text) or _NO_REPR.search(text):
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None  # a TypeError: "{{" opens a set that holds what no set can hold


def _within(data: Any, about: str, label: str, depth: int = 0) -> Iterator[Leaf]:
    """The values of an object; the first key that names it gives its identity."""
    if isinstance(data, dict) and depth < _DEEPEST:
        names = [key for key, value in data.items() if _IDENTITY.fullmatch(str(key)) and isinstance(value, str | int)]
        if names:
            own = " ".join(f"{label_of(names[0]) or label} {data[names[0]]}".split())
            about = own if len(own) <= _LONGEST else about
        for key, value in data.items():
            if any(map(str.isdigit, str(key))):
                yield Leaf(str(key), about, label)
            yield from _within(value, about, "" if names[:1] == [key] else label_of(str(key)) or label, depth + 1)
    elif isinstance(data, list | tuple) and depth < _DEEPEST:
        for item in data:
            yield from _within(item, about, label, depth + 1)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        value = " ".join(str(data).split())
        if 0 < len(value) <= _LONGEST:
            yield Leaf(value, about, label)


def label_of(key: str) -> str:
    """The last two names of a key in plain words: `reservation` for `reservation_id`."""
    names = [name.lower() for name in _NAMES.findall(key[:_LONGEST])]
    if any(name.isdigit() and len(name) > 2 for name in names):
        return ""  # the key is an identifier itself
    return " ".join([name for name in names if name not in _EMPTY_NAMES][-2:])
