"""Marks of tool calls and results in a rendered row: written and read here."""

from __future__ import annotations

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
    kept: list[str] = []
    begin, at = f"call {name}(", 0
    found = text.find(begin)
    while found >= 0:
        if found and text[found - 1] != "\n":
            found = text.find(begin, found + 1)
            continue
        kept.append(text[at:found])
        at = end if (end := text.find("\n", found)) >= 0 else len(text)
        found = text.find(begin, at)
    return "".join([*kept, text[at:]]) if kept else text
