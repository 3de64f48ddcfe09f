"""Marks of tool calls and results in a rendered row: written and read here."""

from __future__ import annotations

from collections.abc import Iterator

ORPHAN = "[result without a call] "
"""Begins a result whose call is not in the history."""
_PIECE = 500_000
"""Characters of a text that are read at once."""


def call_line(name: str, *arguments: str) -> str:
    """The line of a call; `arguments` is JSON, perhaps in pieces."""
    return "".join(("call ", name, "(", *arguments, ")"))


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
    pieces = list(pieces_without_calls(text, name))
    return text if sum(map(len, pieces)) == len(text) else "".join(pieces)


def pieces_without_calls(text: str, name: str) -> Iterator[str]:
    """The same in pieces: a text of megabytes takes long."""
    begin, start, at = f"call {name}(", 0, 0
    while at < len(text):
        end = min(at + _PIECE, len(text))
        found = text.find(begin, at, end + len(begin) - 1)
        if found < 0:
            yield text[start:end]
            start = at = end
        elif found and text[found - 1] != "\n":
            at = found + 1
        else:
            yield text[start:found]
            line_end = text.find("\n", found)
            start = at = line_end if line_end >= 0 else len(text)
