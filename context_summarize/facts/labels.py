"""Values in JSON text with what they are: the identity of their row, and the name of their key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from context_summarize.facts.patterns import one_line

MOST_READ = 60_000
"""Characters of one row in which keys are looked for."""
_LONGEST = 80
"""Characters; a longer text is prose, and no value of its key."""
_DEEPEST = 12

# Possessive: a quotation mark without its pair is passed over once, however long the text behind it is.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)"(\s{0,8}:)?|\\.|"|([{}\[\]])|(-?\d[\d.eE+-]{0,30}|true|false)', re.S)
_NAMES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_STRONG = re.compile(r"(?:.*[a-z_-])?(?:_id|Id|ID|-id)|id|ID|uuid")
_WEAK = re.compile(r"(?i).*(?:number|code|name|key|title|path|file|url|email|sku|slug)")
_EMPTY_NAMES = frozenset(
    {"id", "ids", "number", "no", "code", "uuid", "value", "data", "result", "results", "item", "items"}
)


class Labelled(NamedTuple):
    """One value of a JSON text."""

    value: str
    about: str
    """Identity of its row, with the name of the key that holds it; "" without one."""
    label: str
    """Name of its key; "" for the identity itself."""


@dataclass(slots=True)
class _Frame:
    """An object or a list that is open."""

    label: str
    about: str
    is_list: bool
    key: str = ""
    is_own: bool = False
    """True if the object has an identity of its own."""
    first: bool = True


def label_of(key: str) -> str:
    """The last two names of a key in plain words: `reservation` for `reservation_id`."""
    names = [name.lower() for name in _NAMES.findall(key[:_LONGEST])]
    if any(name.isdigit() and len(name) > 2 for name in names):
        return ""  # the key is an id itself
    telling = [name for name in names if name not in _EMPTY_NAMES]
    return " ".join(telling[-2:])


def labelled(text: str, about: str = "") -> Iterator[Labelled]:
    """The short values of a JSON text, in order; text that is cut off or no JSON gives what can be read.

    Args:
        about: what rows without an identity belong to, such as the argument of the call.
    """
    stack = [_Frame("", about, True)]
    deeper = 0
    for match in _TOKEN.finditer(text, 0, MOST_READ):
        string, colon, bracket, bare = match.group(1, 2, 3, 4)
        frame = stack[-1]
        if bracket and bracket in "{[":
            if len(stack) < _DEEPEST:
                stack.append(_Frame(_label_within(frame), frame.about, bracket == "["))
            else:
                deeper += 1
        elif bracket and deeper:
            deeper -= 1
        elif bracket:
            if len(stack) > 1:
                stack.pop()
            stack[-1].key = ""
        elif string is not None and colon and not frame.is_list:
            frame.key = string
            if any(map(str.isdigit, string)) and len(string) <= _LONGEST:
                yield Labelled(string, frame.about, frame.label)
        elif (value := string if string is not None else bare) is not None and 0 < len(value) <= _LONGEST:
            yield _seen(frame, one_line(value))
            frame.first, frame.key = False, ""


def _label_within(frame: _Frame) -> str:
    return (label_of(frame.key) if frame.key else "") or frame.label


def _seen(frame: _Frame, value: str) -> Labelled:
    """A value of this frame; the first that names the row becomes the row's identity."""
    label = _label_within(frame)
    if not frame.is_list and not frame.is_own and _names_row(frame, value):
        frame.is_own = True
        frame.about = f"{label} {value}" if label and not value.startswith(f"{label}_") else value
        return Labelled(value, frame.about, "")
    return Labelled(value, frame.about, label)


def _names_row(frame: _Frame, value: str) -> bool:
    if value in ("true", "false"):
        return False
    return bool(_STRONG.fullmatch(frame.key)) or (frame.first and not frame.about and bool(_WEAK.fullmatch(frame.key)))
