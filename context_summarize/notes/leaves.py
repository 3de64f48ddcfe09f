"""The short values of JSON, or of Python's way to write it, with the key of each and the identity of its object."""

from __future__ import annotations

import ast
import json
import re
from functools import lru_cache
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


class _Key(NamedTuple):
    """What the name of a key says."""

    is_identity: bool
    is_value: bool
    label: str


def leaves(text: str) -> list[Leaf]:
    """The short values of a text in their order; none of a text that is no data."""
    found: list[Leaf] = []
    if text.lstrip()[:1] in ("{", "[") and len(text) <= MOST_READ:
        _collect(_parsed(text), "", "", _DEEPEST, found)
    return found


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


def _collect(data: Any, about: str, label: str, depth: int, found: list[Leaf]) -> None:
    """Add the values of an object; the first key that names it gives its identity."""
    if len(found) >= _MOST or isinstance(data, bool) or not depth:
        return
    if isinstance(data, dict):
        keys = {key: _key(str(key)) for key in data}
        identity = next((key for key in data if keys[key].is_identity and isinstance(data[key], str | int)), None)
        if identity is not None:
            own = " ".join(f"{keys[identity].label or label} {data[identity]}".split())
            about = own if len(own) <= _LONGEST else about
        for key, value in data.items():
            if keys[key].is_value:
                found.append(Leaf(str(key), about, label))
            _collect(value, about, "" if key == identity else keys[key].label or label, depth - 1, found)
    elif isinstance(data, list | tuple):
        for item in data:
            _collect(item, about, label, depth - 1, found)
    elif isinstance(data, str | int | float):
        value = " ".join(str(data).split())
        if 0 < len(value) <= _LONGEST:
            found.append(Leaf(value, about, label))


@lru_cache(maxsize=4_096)
def _key(key: str) -> _Key:
    """The label is the last two names of a key in plain words: `reservation` for `reservation_id`."""
    names = [name.lower() for name in _NAMES.findall(key[:_LONGEST])]
    is_id = any(name.isdigit() and len(name) > 2 for name in names)  # the key is an identifier itself
    label = "" if is_id else " ".join([name for name in names if name not in _EMPTY_NAMES][-2:])
    return _Key(_IDENTITY.fullmatch(key) is not None, any(map(str.isdigit, key)), label)
