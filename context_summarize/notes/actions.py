"""What tool calls did, told by the names of their arguments and the shape of their results; folded into a few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_summarize.config import ToolKind
from context_summarize.notes.sentences import shortened
from context_summarize.transcript.rows import RenderedRow, calls_in

_MOST = 160
"""Characters of a path, a command or an outcome as it is told."""
_LOOKED_AT = 4_000
"""Characters of a command, and of each end of a result, that are looked at."""
_STARTED = 500
"""Characters of a result that may say that something was started."""
_LARGEST = 1_000_000
"""Characters of JSON that are read."""

_PATH_KEY = re.compile(r"(?:^|_)(?:file|path|uri)$|file_?(?:path|name)$")
_CONTENT_KEY = re.compile(r"^(?:old|new)|content|replace|edits?$|diff|patch|insert|text$")
_COMMAND_KEYS = ("command", "cmd", "script")
_JOB_KEYS = ("description", *_COMMAND_KEYS, "prompt", "instruction")
_READS = re.compile(r"(?i:read|view|open|cat|get|list|ls|search|grep|glob|find|fetch)(?![a-z])")
_CREATES = re.compile(r"(?i:write|create)(?![a-z])|.*[Pp]atch")
_DELETES = re.compile(r"(?i:delete|remove|rm)(?![a-z])")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?!/dev/null)(?:b/)?)(\S.{0,300})$", re.M)

_SHELL = re.compile(r"((?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|[^\s\"'\\|;&<>()])+)|([|;&<>()\n]+)")
"""A word, or signs between words."""
_HERE = re.compile(r"(<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n).*?(?:^[ \t]*\2$|\Z)", re.S | re.M)
"""Text that a shell command is given; it holds no commands."""
_SHORTENING = re.compile(r"(?: ?2>&1)?(?: ?\| ?(?:head|tail)\b[^|;&\n]*)?$")
"""The end of a command that only shortens what it prints."""
_TEST_RUN = re.compile(r"(?:\S+/)?(?:\w*test|\w*unit|\w*spec|tox|nox|jest|mocha|bats)(?::\S+)?")
_COUNTS = re.compile(
    r"(?i)\b\d+ (?:tests? )?(?:pass|fail|error)|^(?:ok|pass|fail(?:ed)?)\b|\bran \d+ test|^tests\b.*: +\d"
)

_STATUS = re.compile(r"(?i)\b(?:exit(?:ed)?|return)[ _]?(?:with )?(?:code|status)\W{1,3}(-?\d{1,3})\W*$")
_ERROR = re.compile(
    r"(?i)^(?:fatal |<?tool_use_)?(?:error|fatal)[:>\[!](?! false)|^[\w.]*(?:error|exception)(?:: |$)"
    r"|^[\w./@-]++(?:\([\d,]+\)|[\d:]+)?: (?:fatal )?error\b|: (?:no such file or directory|permission denied)$"
    r"|^\W{0,4}(?-i:FAIL)(?:ED|URE)?\b|^is_?error: true|^success: false|^(?:could not|cannot|failed to|unable to) "
    r"|\bcommand (?:failed|aborted|timed out|not found)\b"
)
_RUNNING = re.compile(r"(?i)\bstatus\W{1,5}(?:running|in_progress)\b|\b(?:runn|work)ing in (?:the )?background\b")
_ENDED = re.compile(
    r"(?i)(?:\b|_)(?:completed?|done|finished|failed|exited|stopped|kill(?:ed)?|cancelled)(?:\b|_|(?-i:(?<=[Kk]ill)[A-Z]))"
)
_JOB_ID = re.compile(r"(?:(?:\b|_)(?:id|ID|pid)|[a-z]Id)['\"]?\s*[:=]\s*['\"]?(\w+(?:[.-]\w+)*)")


@dataclass(slots=True)
class Actions:
    """Takes rendered rows in their order; `lines()` tells what they came to.

    Args:
        tools: kinds by tool name that come before what is read from the arguments; see the setting `action_tools`.
    """

    tools: Mapping[str, ToolKind]
    _edited: dict[str, str] = field(default_factory=dict)
    """Path → what is told with it; the newest is the last, here as below."""
    _failed: dict[str, str] = field(default_factory=dict)
    """Command → why its newest run failed; one that is fine by now is no longer told."""
    _tests: dict[str, str] = field(default_factory=dict)
    """Command → how its newest run ended."""
    _running: dict[str, str] = field(default_factory=dict)
    """Id of a job → what it is."""

    def read(self, rows: Sequence[RenderedRow]) -> None:
        """Take in the rows of one group: calls and their results."""
        calls: list[tuple[str, str, int]] = []
        for row in rows:
            if row.role == "assistant":
                calls = [(name, text, row.number) for name, text in calls_in(row.text)]
            elif row.role == "tool" and calls:
                at = next((at for at, call in enumerate(calls) if call[0] == row.name), 0)
                self._take(*calls.pop(at), row.text)
            else:
                self._end_jobs(row.text)

    def _take(self, name: str, arguments: str, number: int, result: str) -> None:
        given, lines = _object(arguments), _lines(result)
        kind = self._kind(name, given)
        if kind == "command":
            self._ran((_text(given, _COMMAND_KEYS) or f"{name} {arguments}")[:_LOOKED_AT], lines, number)
        elif kind != "none" and not any(map(_ERROR.search, lines[:2])):
            for path in [_path(given)] if _path(given) else _patched(given):
                _put(self._edited, path, " (deleted)" if kind == "delete" else "")
        if self._running:
            self._end_jobs("\n".join((name, arguments, *lines)))
        start = result[:_STARTED]
        if _RUNNING.search(start) and (job := _JOB_ID.search(start)):
            what = shortened(_text(given, _JOB_KEYS) or name, _MOST)
            self._running.setdefault(job[1], f"{what} ({job[1]}, #{number})")

    def _kind(self, name: str, given: Mapping[str, Any]) -> ToolKind:
        plain = re.split(r"__|[./:]", name)[-1]
        if known := self.tools.get(name) or self.tools.get(plain):
            return known
        if not _path(given) and _text(given, _COMMAND_KEYS):
            return "command"
        if _DELETES.match(plain):
            return "delete"
        changes = any(_CONTENT_KEY.search(key.lower()) for key in given) and not _READS.match(plain)
        return "edit" if changes or _CREATES.match(plain) else "none"

    def _ran(self, command: str, lines: Sequence[str], number: int) -> None:
        told = _SHORTENING.sub("", command)
        commands = list(_commands(command))
        for path in (path for _, files in commands for path in files):
            _put(self._edited, path, "")
        failure, counts = _failure(lines), [line for line in lines if _COUNTS.search(line)]
        if any(_TEST_RUN.fullmatch(word) for words, _ in commands for word in words) and (failure or counts):
            _put(self._tests, told, f"{failure or shortened(counts[-1], _MOST)} (#{number})")
        elif failure:
            _put(self._failed, told, failure)
        else:
            self._failed.pop(shortened(told, _MOST), None)

    def _end_jobs(self, text: str) -> None:
        """Forget the jobs of which a later row says that they have ended."""
        named = [job for job in self._running if re.search(rf"\b{re.escape(job)}\b", text)]
        if named and _ENDED.search(text) and not _RUNNING.search(text):
            for job in named:
                del self._running[job]

    def lines(self, operations: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
        """(heading, items, newest first) of each kind, the most telling one first.

        Args:
            operations: what the host says is under way.
        """
        failed = reversed(self._failed.items())
        yield "Still running", [*operations, *reversed(self._running.values())]
        yield "Tests, last result", [f"`{what}` → {outcome}" for what, outcome in reversed(self._tests.items())]
        yield "Failed commands", [f"`{what}` → {outcome}" for what, outcome in failed]
        yield "Edited files", [f"{path}{told}" for path, told in reversed(self._edited.items())]


def _put(into: dict[str, str], key: str, value: str) -> None:
    """Keep it as the newest."""
    key = shortened(key, _MOST)
    into.pop(key, None)
    into[key] = value


def _object(text: str) -> dict[str, Any]:
    """The JSON object of this text, a JSON text under no name; {} for any other text."""
    try:
        given = json.loads(text) if len(text) <= _LARGEST else None
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {"": given} if isinstance(given, str) else {}


def _text(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of these arguments that is a text, or a list of words."""
    found = (given.get(key) for key in keys)
    texts = (" ".join(map(str, value)) if isinstance(value, list) else value for value in found)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _path(given: Mapping[str, Any]) -> str:
    named = (value for key, value in given.items() if _PATH_KEY.search(key.lower()))
    return next((value for value in named if isinstance(value, str) and value and "\n" not in value), "")


def _patched(given: Mapping[str, Any]) -> list[str]:
    return [path for value in given.values() if isinstance(value, str) for path in _PATCHED.findall(value)]


def _commands(line: str) -> Iterator[tuple[list[str], list[str]]]:
    """(words, files that it writes) of each command of a shell line; by redirects and `sed -i`."""
    line = _HERE.sub(r"\1", f"{line}\n")
    words: list[str] = []
    files: list[str] = []
    to_file = False
    for found in _SHELL.finditer(line):
        word, signs = found.groups()
        if word:
            (files if to_file else words).append(word)
            to_file = False
        elif signs.endswith(">"):
            to_file = line[found.start() - 1] not in "2-="  # not in `2>` and `->`
        elif not set(signs).isdisjoint("|;&(\n"):
            if words[:1] == ["sed"] and any(one.startswith("-i") for one in words):
                files.append(words[-1])
            yield words, [path for one in files if not (path := one.strip("\"'")).startswith(("/dev/", "$"))]
            words, files = [], []


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
