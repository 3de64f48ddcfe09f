"""The short values of JSON, or of Python's way to write it, with the key of each and the identity of its object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

MOST_READ = 60_000
"""Characters of one row in which keys are looked for."""
_LONGEST = 80
"""Characters; a longer text is prose, and no value of its key."""
_DEEPEST = 12

# Possessive: a quotation mark without its pair is passed over once, however long the text behind it is.
_TOKEN = re.compile(
    r'"(?P<double>(?:[^"\\]++|\\.)*+)"(?P<colon>\s{0,8}:)?'
    r"|(?<=[{\[,:\s])'(?P<single>(?:[^'\\\n]++|\\.)*+)'(?:(?P<mark>\s{0,8}:)|(?=\s{0,8}[,\]}]))"
    r"|\\.|\"|(?P<bracket>[{}\[\]])|(?P<bare>-?\d[\d.eE+-]{0,30})",
    re.S,
)
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


@dataclass(slots=True)
class _Open:
    """An object or a list that is open."""

    label: str
    about: str
    is_list: bool
    key: str = ""
    is_own: bool = False
    """True if the object has an identity of its own."""


def is_data(text: str) -> bool:
    """True for a text that begins as JSON does."""
    return text.lstrip()[:1] in ("{", "[")


def leaves(text: str) -> Iterator[Leaf]:
    """The short values in order; text that is cut off, or not quite JSON, gives what can be read."""
    stack = [_Open("", "", True)]
    deeper = 0
    for match in _TOKEN.finditer(text, 0, MOST_READ):
        string = match["double"] if match["double"] is not None else match["single"]
        frame, bracket = stack[-1], match["bracket"]
        if bracket and bracket in "{[":
            if len(stack) < _DEEPEST:
                stack.append(_Open(_label_within(frame), frame.about, bracket == "["))
            else:
                deeper += 1
        elif bracket and deeper:
            deeper -= 1
        elif bracket:
            if len(stack) > 1:
                stack.pop()
            stack[-1].key = ""
        elif string is not None and (match["colon"] or match["mark"]) and not frame.is_list:
            frame.key = string
            if any(map(str.isdigit, string)) and len(string) <= _LONGEST:
                yield Leaf(string, frame.about, frame.label)
        elif (value := string if string is not None else match["bare"]) and len(value) <= _LONGEST:
            yield _seen(frame, " ".join(value.split()))
            frame.key = ""


def label_of(key: str) -> str:
    """The last two names of a key in plain words: `reservation` for `reservation_id`."""
    names = [name.lower() for name in _NAMES.findall(key[:_LONGEST])]
    if any(name.isdigit() and len(name) > 2 for name in names):
        return ""  # the key is an identifier itself
    return " ".join([name for name in names if name not in _EMPTY_NAMES][-2:])


def _label_within(frame: _Open) -> str:
    return (label_of(frame.key) if frame.key else "") or frame.label


def _seen(frame: _Open, value: str) -> Leaf:
    """A value of this object; the first that names the object becomes its identity."""
    label = _label_within(frame)
    if not frame.is_list and not frame.is_own and _IDENTITY.fullmatch(frame.key):
        frame.is_own = True
        frame.about = f"{label} {value}" if label else value
        return Leaf(value, frame.about, "")
    return Leaf(value, frame.about, label)
