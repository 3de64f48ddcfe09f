"""What tool calls did, told by the names of their arguments and the shape of their results; folded into a few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from context_summarize.config import ToolKind
from context_summarize.notes.sentences import shortened
from context_summarize.transcript.rows import RenderedRow, calls_in

T = TypeVar("T")

_MOST = 160
"""Characters of a path, a command or an outcome as it is told."""
_LOOKED_AT = 4_000
"""Characters of a command, and of each end of a result, that are looked at."""
_LARGEST = 1_000_000
"""Characters of JSON that are read."""

_PATH_KEY = re.compile(r"(?:^|_)(?:file|path|uri)$|file_?(?:path|name)$")
_CONTENT_KEY = re.compile(r"^(?:old|new)|content|replace|edits?$|diff|patch|insert|text$")
_COMMAND_KEYS = ("command", "cmd", "script")
_READS = re.compile(r"(?i:read|view|open|cat|get|list|ls|search|grep|glob|find|fetch)(?![a-z])")
_CREATES = re.compile(r"(?i:write|create|delete|remove|rm)(?![a-z])|.*[Pp]atch")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?!/dev/null)(?:b/)?)(\S.{0,300})$", re.M)

_GIVEN = re.compile(
    r"(<<-?\s*['\"]?(\w++)['\"]?[^\n]*\n).*?(?:^[ \t]*\2$|\Z)|\"(?:\\.|[^\"\\])*+(?:\"|\\?\Z)|'[^']*'", re.S | re.M
)
"""Text that a shell command is given, or a quoted one: it holds no commands."""
_WRITES = re.compile(r"(?<![-=2])>{1,2} ?(?!/dev/)([\w./~@%+-]+)|\bsed -i[^;|&\n]*\s([\w./~@%+-]+)")
_TEST_RUN = re.compile(r"(?:^|[\s/])(?:\w*test|\w*unit|\w*spec|tox|nox|jest|mocha|bats)(?::\S+)?(?![\w./-])")
_COUNTS = re.compile(
    r"(?i)\b\d+ (?:tests? )?(?:pass|fail|error)|^(?:ok|pass|fail(?:ed)?)\b|\bran \d+ test|^tests\b.*: +\d"
)
_STATUS = re.compile(r"(?i)\b(?:exit(?:ed)?|return)[ _]?(?:with )?(?:code|status)\W{1,3}(-?\d{1,3})\W*$")
_ERROR = re.compile(
    r"(?i)^(?:[\w./@-]++(?:\([\d,]+\)|[\d:]+)?: )?<?(?:fatal |tool_use_)?(?:error|fatal)(?:[:>\[!]| [A-Z]+\d)(?! false)"
    r"|^[\w.]*(?:error|exception)(?:: |$)|: (?:no such file or directory|permission denied|command not found)$"
    r"|^\W{0,4}(?-i:FAIL)(?:ED|URE)?\b|^is_?error: true|^success: false"
)


@dataclass(slots=True)
class Actions:
    """Takes rendered rows in their order; `lines()` tells what they came to.

    Args:
        tools: kinds by tool name that come before what is read from the arguments; see the setting `action_tools`.
    """

    tools: Mapping[str, ToolKind]
    _edited: dict[str, None] = field(default_factory=dict)
    """Paths; the newest is the last, here as below."""
    _failed: dict[str, str] = field(default_factory=dict)
    """Command → why its newest run failed; one that is fine by now is no longer told."""
    _tests: dict[str, str] = field(default_factory=dict)
    """Command → how its newest run ended."""

    def read(self, rows: Sequence[RenderedRow]) -> None:
        """Take in the rows of one group: calls and their results."""
        calls: list[tuple[str, str, int]] = []
        for row in rows:
            if row.role == "assistant":
                calls = [(name, text, row.number) for name, text in calls_in(row.text)]
            elif row.role == "tool" and calls:
                at = next((at for at, call in enumerate(calls) if call[0] == row.name), 0)
                self._take(*calls.pop(at), row.text)

    def _take(self, name: str, arguments: str, number: int, result: str) -> None:
        given = _object(arguments)
        kind = self._kind(name, given)
        if kind == "command":
            self._ran((_command(given) or f"{name} {arguments}")[:_LOOKED_AT], _lines(result), number)
        elif kind != "none" and not any(map(_ERROR.search, _lines(result)[:2])):
            patched = [path for value in given.values() if isinstance(value, str) for path in _PATCHED.findall(value)]
            for path in [_path(given)] if _path(given) else patched:
                _put(self._edited, path, None)

    def _kind(self, name: str, given: Mapping[str, Any]) -> ToolKind:
        plain = re.split(r"__|[./:]", name)[-1]
        if known := self.tools.get(name) or self.tools.get(plain):
            return known
        if not _path(given) and _command(given):
            return "command"
        changes = any(_CONTENT_KEY.search(key.lower()) for key in given) and not _READS.match(plain)
        return "edit" if changes or _CREATES.match(plain) else "none"

    def _ran(self, command: str, lines: Sequence[str], number: int) -> None:
        bare = _GIVEN.sub(r"\1", command)
        for path in (one or other for one, other in _WRITES.findall(bare)):
            _put(self._edited, path, None)
        failure, counts = _failure(lines), [line for line in lines if _COUNTS.search(line)]
        if _TEST_RUN.search(bare) and (failure or counts):
            _put(self._tests, command, f"{failure or shortened(counts[-1], _MOST)} (#{number})")
        elif failure:
            _put(self._failed, command, failure)
        else:
            self._failed.pop(shortened(command, _MOST), None)

    def lines(self, operations: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
        """(heading, items, newest first) of each kind, the most telling one first.

        Args:
            operations: what the host says is under way.
        """
        yield "Still running: ", [*operations]
        yield "Tests, last result: ", [f"`{what}` → {outcome}" for what, outcome in reversed(self._tests.items())]
        yield "Failed commands: ", [f"`{what}` → {outcome}" for what, outcome in reversed(self._failed.items())]
        yield "Edited files: ", [*reversed(self._edited)]


def _put(into: dict[str, T], key: str, value: T) -> None:
    """Keep it as the newest."""
    key = shortened(key, _MOST)
    into.pop(key, None)
    into[key] = value


def _object(text: str) -> dict[str, Any]:
    """The JSON object of this text, a JSON text under no name; {} for any other text."""
    try:
        given = json.loads(text) if len(text) <= _LARGEST else None
    except (ValueError, RecursionError):
        given = None
    return given if isinstance(given, dict) else {"": given} if isinstance(given, str) else {}


def _command(given: Mapping[str, Any]) -> str:
    """The argument that is a command: a text, or a list of words."""
    found = (given.get(key) for key in _COMMAND_KEYS)
    texts = (" ".join(map(str, value)) if isinstance(value, list) else value for value in found)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _path(given: Mapping[str, Any]) -> str:
    named = (value for key, value in given.items() if _PATH_KEY.search(key.lower()))
    return next((value for value in named if isinstance(value, str) and value and "\n" not in value), "")


def _lines(result: str) -> list[str]:
    """The lines of both ends of a result; of a JSON object the fields, texts last."""
    fields = sorted(_object(result).items(), key=lambda item: (item[0] != "error", isinstance(item[1], str)))
    told = [(key, value) for key, value in fields if value not in (None, "")]
    texts = [value if isinstance(value, str) and key != "error" else f"{key}: {value}" for key, value in told]
    text = "\n".join(texts) or result
    ends = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    return [line.strip() for line in ends.splitlines() if line.strip()]


def _failure(lines: Sequence[str]) -> str:
    """Why a command failed, in one line; "" where it did not."""
    status = next((found[1] for line in [*lines[:4], *lines[-4:]] if (found := _STATUS.search(line))), "")
    errors = [line for line in lines if _ERROR.search(line)]
    crashed = any(line.startswith("Traceback (most recent") for line in lines)
    if status == "0" or not (status or errors or crashed):
        return ""
    said = [line for line in reversed(lines) if not _STATUS.search(line)]
    why = shortened(next(iter(errors or said), ""), _MOST)
    return ": ".join(part for part in (f"exit {status}" if status else "", why) if part)
