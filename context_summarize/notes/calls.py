"""Reads the names, paths and command of a tool call from its arguments, and the most useful line of its result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from context_summarize.config import ToolKind
from context_summarize.notes.forms import names_in, spelled
from context_summarize.notes.prose import cut, ends_of, flat
from context_summarize.transcript.rendered import RenderedRow, calls_in, may_be_call

_LINE = 120
"""Characters of a result's line."""
_SHORT_RESULT = 100
"""Characters of a result that is quoted whole."""
_SHORT_ARGUMENT = 300
"""Characters of the longest argument that names are read from, and of the longest path."""
_LARGEST = 1_000_000
"""Characters of the longest arguments that are read as JSON."""
_LONG_COMMAND = 2_000
_PATH_KEY = re.compile(r"(?:^|_)(?:file|path|uri)$|file_?(?:path|name)$")
_CONTENT_KEY = re.compile(r"^(?:old|new)|content|replace|edits?$|diff|patch|insert|text$")
_COMMAND_KEYS = ("command", "cmd", "script")
_READS = re.compile(r"(?i:read|view|open|cat|get|list|ls|search|grep|glob|find|fetch)(?![a-z])")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?!/dev/null)(?:b/)?)(\S.{0,300})$", re.M)
_LINE_END = re.compile(r"\n|(?<!\\)\\n")
"""A line end in a text, and as JSON writes it."""
_COUNTS = re.compile(r"(?i)\b\d+ (?:[a-z]{1,12} )?(?:error|fail|pass|warning|test|problem)")
_ERRORS = re.compile(r"(?i)error|exception|fail|fatal|denied|not found|no such|exit (?:code|status)|returncode")


@dataclass(slots=True)
class Carried:
    """The parts of one call that the notes may quote."""

    number: int
    """Number of the message that makes the call."""
    short: str
    """Its short arguments, a line each."""
    names: tuple[str, ...]
    """Names in the short arguments, in one spelling."""
    paths: tuple[str, ...]
    """Paths that the call carried content to."""
    command: str
    result: str = ""
    """The quoted part of its result: one line for a command, a short result for other calls."""

    def answer(self, result: str) -> None:
        """Takes in the call's result."""
        if self.command:
            self.result = most_useful_line(result)
        elif self.paths:
            line = flat(result)
            self.result = line if len(line) <= _SHORT_RESULT else ""


def calls_of(row: RenderedRow, tools: Mapping[str, ToolKind]) -> dict[int, Carried]:
    """Returns the calls of a row by their places. They are its last lines; prose before them may look like calls.

    Args:
        tools: kinds by tool name, which override the kind read from the arguments; see the setting `action_tools`.
    """
    lines = [line for line in row.text.split("\n") if may_be_call(line)] if row.calls else []
    found = ((at, next(calls_in(line), None)) for at, line in enumerate(lines[-row.calls :]))
    return {at: _carried(row.number, *call, tools) for at, call in found if call is not None}


def _carried(number: int, name: str, arguments: str, tools: Mapping[str, ToolKind]) -> Carried:
    given = _object(arguments)
    texts, kind = [*_texts(given)], _kind(name, given, tools)
    short = "\n".join(text for text in texts if len(text) <= _SHORT_ARGUMENT)
    paths, command = list[str](), ""
    if kind == "command":
        command = cut(_command(given) or f"{name} {arguments}", _LONG_COMMAND)
    elif kind in ("write", "edit"):
        paths = [_path(given)] if _path(given) else [path for text in texts for path in _PATCHED.findall(text)]
    return Carried(
        number=number,
        short=short,
        names=tuple(dict.fromkeys(map(spelled, names_in(short)))),
        paths=tuple(spelled(path) for path in paths if len(path) <= _SHORT_ARGUMENT),
        command=command,
    )


def most_useful_line(result: str) -> str:
    """Returns the last line that counts tests or errors, else the last that names an error, else the last one."""
    lines = [line for line in map(flat, _LINE_END.split(ends_of(result))) if any(map(str.isalnum, line))]
    for pattern in (_COUNTS, _ERRORS):
        if found := [line for line in lines if pattern.search(line)]:
            return cut(found[-1], _LINE)
    return cut(lines[-1], _LINE) if lines else ""


def _kind(name: str, given: Mapping[str, Any], tools: Mapping[str, ToolKind]) -> ToolKind:
    plain = re.split(r"__|[./:]", name)[-1]
    if known := tools.get(name) or tools.get(plain):
        return known
    if not _path(given) and _command(given):
        return "command"
    carries = any(_CONTENT_KEY.search(key.lower()) for key in given) and not _READS.match(plain)
    return "edit" if carries else "none"


def _object(text: str) -> dict[str, Any]:
    """Returns the JSON object of this text; another JSON value gets the key ""; {} for a text that is no JSON."""
    try:
        given = json.loads(text) if len(text) <= _LARGEST else {}
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {"": given}


def _texts(value: Any) -> Iterator[str]:
    """Yields every text in arguments."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            left += reversed([*one.values()] if isinstance(one, dict) else one)


def _command(given: Mapping[str, Any]) -> str:
    """Returns the argument that is a command: a text, or a list of words; "" without one."""
    found = (given.get(key) for key in _COMMAND_KEYS)
    texts = (" ".join(map(str, value)) if isinstance(value, list) else value for value in found)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _path(given: Mapping[str, Any]) -> str:
    named = (value for key, value in given.items() if _PATH_KEY.search(key.lower()))
    return next((value for value in named if isinstance(value, str) and value and "\n" not in value), "")
