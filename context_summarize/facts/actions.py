"""What one tool call did, told by its arguments and its result alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from context_summarize.config import ToolKind
from context_summarize.facts.action_tools import (
    COMMAND_KEYS,
    LABEL_KEYS,
    PATH_KEYS,
    QUERY_KEYS,
    kind_of,
)
from context_summarize.facts.outcomes import (
    END,
    both_ends,
    exit_status,
    found_nothing,
    is_error,
    is_test,
    problem,
    running_job,
    test_figures,
)
from context_summarize.facts.patterns import one_line, shortened
from context_summarize.messages.rows import Call

Verb = Literal["read", "created", "edited", "deleted", "ran", "searched", "delegated", "changed"]

MOST = 160
"""Characters of a command, a query or a label as it is told."""
_LONGEST_PLAIN = 48
"""Characters of an argument that names what a call is about; longer ones are left out."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that the agent did."""

    verb: Verb
    what: str
    """A path, a command, a query, a label, or what a call was given, on one line, redacted."""
    number: int
    """The message that asked for it, as frames count."""
    failed: bool = False
    outcome: str = ""
    """Exit status, error or result of a test run, on one line, redacted; "" where none is told."""
    tool: str = ""
    """Of verbs `delegated` and `changed`: the name of the tool."""
    job: str = ""
    """Id of what still runs when the call has returned; "" where nothing does."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call with its result."""

    call: Call
    result: str | None
    """None while there is none."""
    failed: bool = False
    """True where the host marks the result as an error."""


_VERBS: Mapping[ToolKind, Verb] = {"read": "read", "write": "created", "edit": "edited", "delete": "deleted"}
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.{1,300})$|^\+\+\+ (?:b/)?(\S.{0,300})$", re.M)
_PATCH_VERBS: Mapping[str, Verb] = {"Update": "edited", "Add": "created", "Delete": "deleted"}
_OPENED = re.compile(r"\[File: (\S{1,300}) \(\d{1,9} lines total\)\]")
_REMOVED = re.compile(r"(?:^|[;&|]\s{0,9})(?:git )?rm\s([^;&|\n]{1,300})")
_PATH = r"([\w./~@+-]{1,200})"
_WRITTEN = re.compile(
    rf"(?:^|[;&|]\s{{0,9}})(?:cat|echo|printf)\b[^;&|\n]{{0,300}}?(>>?)\s{{0,3}}{_PATH}"
    rf"|\btee\s{{1,3}}(?:-a\s)?{_PATH}|\bsed\s{{1,3}}-i\S{{0,10}}\s[^;&|\n]{{1,400}}\s{_PATH}\s{{0,3}}(?=$|[;&|\n])"
)


class ActionReader:
    """Reads calls in their order; it remembers the file that an editor has open.

    Args:
        tools: kinds by tool name that come before the known ones.
        redact: removes secrets; None = nothing is removed.
    """

    def __init__(self, tools: Mapping[str, ToolKind], redact: Callable[[str], str] | None) -> None:
        self._tools = tools
        self._redact = redact
        self._open_file = ""

    def read(self, answered: Answered, number: int) -> Iterator[Action]:
        """What the call did; nothing for a call that leaves nothing to be told."""
        call = answered.call
        given = call.arguments if isinstance(call.arguments, dict) else {}
        kind = kind_of(call.name, given, self._tools)
        result = both_ends(answered.result or "")
        failed = answered.failed or is_error(result)
        if kind == "command":
            yield from self._command(answered, _first(given, COMMAND_KEYS), result, number)
        elif kind in _VERBS:
            yield from self._files(kind, call, given, failed, number)
        elif kind == "search":
            if not failed and answered.result is not None and found_nothing(result):
                yield Action("searched", self._line(_first(given, QUERY_KEYS)), number)
        elif kind == "delegate":
            job = call.id if answered.result is None else running_job(result)
            label = self._line(_first(given, LABEL_KEYS))
            yield Action("delegated", label, number, failed, tool=self._line(call.name), job=job)
        elif kind == "change":
            yield Action("changed", self._line(_plain_arguments(given)), number, failed, tool=self._line(call.name))
        if opened := _OPENED.search(result):
            self._open_file = opened[1]

    def _files(
        self, kind: ToolKind, call: Call, given: Mapping[str, Any], failed: bool, number: int
    ) -> Iterator[Action]:
        text = call.arguments if isinstance(call.arguments, str) else _first(given, ("patch", "input", "diff"))
        patched = list(_PATCHED.finditer(text[: 10 * END])) if kind == "edit" else []
        for found in patched:
            yield Action(_PATCH_VERBS.get(found[1], "edited"), self._line(found[2] or found[3]), number, failed)
        if patched:
            return
        path = _first(given, PATH_KEYS)
        if path:
            self._open_file = path
        elif kind == "edit":
            path = self._open_file
        if path:
            yield Action(_VERBS[kind], self._line(path), number, failed)

    def _command(self, answered: Answered, command: str, result: str, number: int) -> Iterator[Action]:
        if not command:
            return
        status, error = exit_status(result), problem(result)
        failed = answered.failed or (bool(error) if status is None else status != 0)
        figures = test_figures(result) if is_test(command) else ""
        told = figures or (error if failed else "")
        outcome = ": ".join(part for part in ("" if status is None else f"exit {status}", told) if part)
        job = answered.call.id if answered.result is None else running_job(result)
        yield Action("ran", self._line(command), number, failed, self._line(outcome), job=job)
        if not failed:
            yield from self._changed_by(command[:END], number)

    def _changed_by(self, command: str, number: int) -> Iterator[Action]:
        """Files that plain shell commands write or remove."""
        for found in _WRITTEN.finditer(command):
            path = found[2] or found[3] or found[4]
            if not path.startswith("/dev/"):
                yield Action("created" if found[1] == ">" else "edited", self._line(path), number)
        for found in _REMOVED.finditer(command):
            for path in found[1].split():
                if not path.startswith("-"):
                    yield Action("deleted", self._line(path), number)

    def _line(self, text: str) -> str:
        """One line of bounded length, without secrets."""
        text = text[:END]
        return shortened(one_line(self._redact(text) if self._redact else text), MOST)


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The first of these arguments that is a text, or a list of texts."""
    for key in keys:
        value = given.get(key)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return " ".join(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _plain_arguments(given: Mapping[str, Any]) -> str:
    """The short texts and numbers that a call was given: they name what it is about."""
    plain = (value for value in given.values() if isinstance(value, str | float) or type(value) is int)
    return " ".join(text for text in map(str, plain) if len(text) <= _LONGEST_PLAIN)
