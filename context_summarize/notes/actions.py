"""What tool calls did, told by the names of their arguments and the shape of their results; folded into a few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_summarize.config import ToolKind
from context_summarize.notes.sentences import shortened
from context_summarize.transcript.calls import calls_in
from context_summarize.transcript.rows import RenderedRow

_MOST = 160
"""Characters of a path, a command or an outcome as it is told."""
_LOOKED_AT = 4_000
"""Characters of each end of a result that are looked at."""

_PATH_KEYS = ("file_path", "path", "filename", "file", "file_name", "filepath", "target_file", "notebook_path", "uri")
_COMMAND_KEYS = ("command", "cmd", "script")
_EDITS = """
old_string old_str search edits diff new_string new_str replace content contents file_text new_content insert_line
"""
_EDIT_KEYS = frozenset(_EDITS.split())
_EDITOR_READS = frozenset({"view", "read", "open"})
_READ_NAMES = re.compile(r"(?:read|view|open|cat|get|list|ls|search|grep|glob|find|fetch)(?![a-z])", re.I)
_DELETE_NAMES = re.compile(r"(?:delete|remove|rm)(?![a-z])", re.I)
_JOB_KEYS = ("job_id", "bash_id", "shell_id", "task_id", "process_id", "agent_id")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,300})$|^\+\+\+ (?:b/)?([^\s/]\S{0,300})", re.M)
_WORD = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'|;&<>]+)"
_REDIRECT = re.compile(rf"(?<![\d&<>=-])>>?\s{{0,3}}({_WORD})")
_IN_PLACE = re.compile(rf"\bsed\s+-i\S*\s+(?:-e\s+)?{_WORD}\s+({_WORD})|\btee\s+(?:-a\s+)?({_WORD})")
_TEST = re.compile(
    r"(?:^|[;&|(]\s*|\s)(?:(?:\S*/)?(?:pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|rspec|phpunit|ctest|bats)\b"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?test|(?:go|cargo|mvn|gradle|dotnet|swift|make|just|mix|deno)\s[^|;&\n]*?\b(?:test|check)\b)"
)
_COUNTS = re.compile(
    r"^.*?(?:\b\d+ (?:tests? )?(?:passed|passing|failed|failing|failures?|errors?)\b|\btest result: "
    r"|^(?:ok|FAIL|PASS)\s|^Ran \d+ tests?|^Tests?: +\d).*$",
    re.M,
)
_EXIT = re.compile(r"(?im)^\W{0,3}(?:exit(?:ed)?(?:[ _-](?:code|status|with code))?|return ?code)\W{1,3}(-?\d{1,5})\b")
_EXIT_KEY = re.compile(r"['\"](?:exit_?code|return_?code|exit_?status)['\"]\s*:\s*(-?\d{1,5})\b")
_FAILED_KEY = re.compile(
    r"['\"](?:is_error['\"]\s*:\s*[tT]rue|success['\"]\s*:\s*[fF]alse|error['\"]\s*:\s*['\"{](?!['\"}]))"
)
_ERROR_LINE = re.compile(
    r"(?m)^.*?(?:\b[A-Z]\w*(?:Error|Exception)\b(?=:|$)|\b(?:error|fatal|failed)\b:"
    r"|: (?:command not found|No such file)).*$"
)
_ERROR_START = re.compile(r"\s*(?:<error>|error:|traceback \(most|fatal:)", re.I)
_RUNNING = re.compile(
    r"['\"]status['\"]\s*:\s*['\"](?:running|queued|pending|started|in_progress)|\brunning in (?:the )?background\b",
    re.I,
)
_ENDED = re.compile(
    r"['\"]?status['\"]?\s*[:=]\s*['\"]?(?:completed?|done|finished|failed|exited|killed|cancelled)", re.I
)
_ID = re.compile(rf"\b(?:{'|'.join(_JOB_KEYS)}|ID)['\"]?\s*[:=]\s*['\"]?([\w.:-]{{1,64}})", re.I)


@dataclass(slots=True)
class _Told:
    """What became of one command or one file."""

    number: int
    """The newest row that did it."""
    times: int = 0
    outcome: str = ""
    failing: bool = False


@dataclass(slots=True)
class Actions:
    """Takes rendered rows in their order; `lines()` tells what they came to.

    Args:
        tools: kinds by tool name that come before what is read from the arguments; see the setting `action_tools`.
    """

    tools: Mapping[str, ToolKind]
    _edited: dict[str, _Told] = field(default_factory=dict)
    _failed: dict[str, _Told] = field(default_factory=dict)
    _tests: dict[str, _Told] = field(default_factory=dict)
    _running: dict[str, str] = field(default_factory=dict)
    """Id of a job → what it is."""
    _open: list[tuple[str, dict[str, Any], int]] = field(default_factory=list)
    """Calls whose results follow: name, arguments, row."""

    def read(self, rows: Sequence[RenderedRow]) -> None:
        """Take in the rows of one group: calls and their results."""
        for row in rows:
            if row.role == "assistant":
                self._close_open()
                self._open = [(name, _arguments(text), row.number) for name, text in calls_in(row.text)]
            elif row.role == "tool" and self._open:
                self._take(*self._open.pop(0), row.text)
        self._close_open()

    def _close_open(self) -> None:
        for call in self._open:
            self._take(*call, None)
        self._open = []

    def _take(self, name: str, given: dict[str, Any], number: int, result: str | None) -> None:
        ends = _ends(result or "")
        self._end_jobs(given, ends)
        failure = _failure(ends)
        kind = self._kind(name, given)
        if kind == "command":
            self._command(_first(given, _COMMAND_KEYS), ends, failure, number)
        elif kind in ("edit", "write", "delete") and failure is None:
            for path in _paths(given):
                _tell(self._edited, _line(path), number, "deleted" if kind == "delete" else "")
        if _RUNNING.search(ends):
            found = _ID.search(ends)
            label = _first(given, ("description", *_COMMAND_KEYS, "prompt", "task", "agent")) or name
            self._running[found[1] if found else f"#{number}"] = f"{_line(label)[:80]} (#{number})"

    def _kind(self, name: str, given: Mapping[str, Any]) -> ToolKind:
        plain = re.split(r"__|[./:]", name)[-1]
        known = self.tools.get(name) or self.tools.get(plain)
        if known is not None:
            return known
        has_path = any(isinstance(given.get(key), str) for key in _PATH_KEYS)
        if has_path and given.get("command") in _EDITOR_READS:
            return "read"
        if has_path and _DELETE_NAMES.match(plain):
            return "delete"
        if "patch" in plain.lower() or (has_path and not _EDIT_KEYS.isdisjoint(given)):
            return "read" if _READ_NAMES.match(plain) else "edit"
        if has_path and re.search(r"(?i)edit|write|create", plain):
            return "edit"
        return "command" if _first(given, _COMMAND_KEYS) and not has_path else "none"

    def _command(self, command: str, ends: str, failure: str | None, number: int) -> None:
        if not command:
            return
        told = _line(command)
        if _TEST.search(command[:_LOOKED_AT]):
            counts = _COUNTS.findall(_output(ends))
            outcome = _line(counts[-1]) if counts else failure
            if outcome is not None:
                _tell(self._tests, told, number, outcome or "failed", failing=failure is not None)
        elif failure is not None:
            _tell(self._failed, told, number, failure, failing=True)
        elif told in self._failed:
            self._failed[told].failing = False
        if failure is None:
            for path in _written(command[:_LOOKED_AT]):
                _tell(self._edited, _line(path), number)

    def _end_jobs(self, given: Mapping[str, Any], ends: str) -> None:
        """A later result that names a job and says that it has ended."""
        named = {str(value) for value in given.values() if isinstance(value, str | int)} & self._running.keys()
        for job in named | {job for job in self._running if len(job) > 3 and job in ends}:
            if _ENDED.search(ends) and not _RUNNING.search(ends):
                del self._running[job]

    def lines(self, operations: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
        """(heading, items, newest first) of each kind, the most telling one first.

        Args:
            operations: what the host says is under way.
        """
        yield "Still running", [*operations, *(f"{what}: {job}" for job, what in reversed(self._running.items()))]
        yield "Tests, last result", [f"`{what}` → {one.outcome} (#{one.number})" for what, one in _newest(self._tests)]
        failing = sorted(_newest(self._failed), key=lambda item: not item[1].failing)
        yield (
            "Failed commands",
            [f"`{what}` → {one.outcome or 'failed'}{'' if one.failing else ', later fine'}" for what, one in failing],
        )
        yield "Edited files", [_file(path, one) for path, one in _newest(self._edited)]


def _tell(into: dict[str, _Told], what: str, number: int, outcome: str = "", failing: bool = False) -> None:
    found = into.pop(what, None) or _Told(number)
    into[what] = _Told(number, found.times + 1, outcome, failing)


def _newest(found: Mapping[str, _Told]) -> list[tuple[str, _Told]]:
    return list(found.items())[::-1]


def _file(path: str, told: _Told) -> str:
    if told.outcome:
        return f"{path} ({told.outcome})"
    return f"{path} ({told.times}×)" if told.times > 1 else path


def _arguments(text: str) -> dict[str, Any]:
    """A call's arguments; where the text is cut off, those that stand at its beginning."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        pairs = re.findall(r'"(\w{1,40})":\s*"((?:[^"\\]|\\.){1,4000})"', text[: 3 * _LOOKED_AT])
        return dict(pairs)
    return given if isinstance(given, dict) else {"patch": given} if isinstance(given, str) else {}


def _first(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of these arguments that is a text, or a list of texts."""
    for key in keys:
        value = given.get(key)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return " ".join(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _paths(given: Mapping[str, Any]) -> list[str]:
    """The files that an edit names."""
    if path := _first(given, _PATH_KEYS):
        return [path]
    text = _first(given, ("patch", "input", "diff"))
    return [found[0] or found[1] for found in _PATCHED.findall(text[:40_000])]


def _written(command: str) -> Iterator[str]:
    """The files that a shell command writes: targets of redirects, of `tee` and of `sed -i`."""
    bare = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", lambda found: found[0].replace(">", " "), command)
    for found in (*_REDIRECT.finditer(bare), *_IN_PLACE.finditer(bare)):
        path = next(group for group in found.groups() if group is not None).strip("\"'")
        if path and not path.startswith(("/dev/", "&", "$", "-")):
            yield path


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def _output(result: str) -> str:
    """What a program printed, line by line: JSON holds it in one line."""
    return result.replace("\\n", "\n") if result.lstrip()[:1] == "{" else result


def _failure(result: str) -> str | None:
    """Why a call failed, on one line; None where it did not."""
    status = [found[1] for found in (*_EXIT_KEY.finditer(result), *_EXIT.finditer(result)) if found[1]]
    if status and status[0] == "0":
        return None
    errors = [found[0] for found in _ERROR_LINE.finditer(_output(result))]
    if status or _FAILED_KEY.search(result) or _ERROR_START.match(result) or (errors and "Traceback" in result):
        told = _line(errors[-1]) if errors else ""
        return ": ".join(part for part in (f"exit {status[0]}" if status else "", told) if part)
    return _line(errors[-1]) if errors and errors[-1].strip() == result.strip() else None


def _line(text: str) -> str:
    return shortened(text[:_LOOKED_AT], _MOST)
