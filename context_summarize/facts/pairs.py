"""Pairs: values in one run with their own name, such as `port=a8080` and `item-7:DONE|receipt=r-154`."""

from __future__ import annotations

import re

from context_summarize.facts.fact import Fact

_FAR = 120
"""Characters on each side of a value that are looked at."""
_PAIR = re.compile(r"[A-Za-z][\w.-]{0,60}(?:(?:->|=>|[=:|])[\w.-]{1,60}){1,6}")
_AROUND = "\"'`*()[]{}<>,;.!?"


def pair_around(text: str, value: str) -> str:
    """The names and values that stand in one run with the first of this value; "" if it stands in no such run."""
    at = text.find(value)
    if at < 0:
        return ""
    end = at + len(value)
    before = text[max(0, at - _FAR) : at]
    after = text[end : end + _FAR]
    head = "" if before[-1:].isspace() else before.split()[-1:]
    tail = "" if after[:1].isspace() else after.split()[:1]
    run = f"{''.join(head)}{value}{''.join(tail)}".strip(_AROUND)
    return run if run != value and _PAIR.fullmatch(run) else ""


def is_pair(fact: Fact) -> bool:
    """True for a value that stands in one run with its name."""
    return not fact.label and fact.about != fact.value and _PAIR.fullmatch(fact.about) is not None
