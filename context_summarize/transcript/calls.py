"""Marks of tool calls and results in a rendered row: written and read here."""

from __future__ import annotations

import re
from collections.abc import Iterator

ORPHAN = "[result without a call] "
"""Begins a result whose call is not in the history."""


def call_line(name: str, arguments: str) -> str:
    """The line of a call; `arguments` is JSON."""
    return f"call {name}({arguments})"


def may_be_call(line: str) -> bool:
    """True for a line that begins like that of a call."""
    return line.startswith("call ")


def calls_in(text: str) -> Iterator[tuple[str, str]]:
    """(name, argument text) of every line `call NAME(ARGUMENTS)`."""
    for line in text.split("\n"):
        if may_be_call(line) and line.endswith(")"):
            name, bracket, arguments = line[5:-1].partition("(")
            if bracket and name and " " not in name:
                yield name, arguments


def without_calls(text: str, name: str) -> str:
    """The text with the lines that call one tool emptied."""
    return re.sub(rf"(?m)^call {re.escape(name)}\(.*$", "", text) if f"call {name}(" in text else text
