"""Recorded sessions: finds and reads JSONL of messages, and inspects it without playing it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from context_summarize.core.log import Log
from context_summarize.errors import CommandError, MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.result import message_numbers, named
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

STDIN = "-"
_TRANSCRIPT = "transcript.jsonl"
_EXPECTED = (
    "a session file has one JSON message per line; to replay a JSON array, run "
    "`jq -c '.[]' FILE | context-summarize replay -`, and `jq -c '.messages[]' FILE | …` if it stands under the "
    "key messages"
)
_NAMED = 5
"""Ids that an error names."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session."""

    name: str
    """What outputs call it, such as the name of its file."""
    rows: list[JsonRow]
    cut: str | None = None
    """The place of a last line that is cut off, and so left out; None if every line is whole."""


def open_recording(given: str) -> Recording:
    """The recording that a command names: a file, a session's folder, its id or the beginning of one, or `-`.

    A file has one message per line; blank lines and the header of a `persistence` file are skipped. The last line may
    be cut off, as in a file that is still being written.

    Raises:
        CommandError: nothing or more than one session has this name; or the file cannot be read, holds no message,
            or has a line that is not UTF-8, not JSON or not a message.
    """
    path = None if given == STDIN else _path(given)
    try:
        data = sys.stdin.buffer.read() if path is None else path.read_bytes()
    except IsADirectoryError:
        raise CommandError(f"{given!r} is a folder without {_TRANSCRIPT}; name a session file") from None
    except (OSError, ValueError) as error:  # a ValueError: the name holds a NUL
        reason = getattr(error, "strerror", None) or error
        raise CommandError(
            f"{given} cannot be read: {reason}; name a file, the id of a stored session, or {STDIN} for standard input"
        ) from None
    if path is None:
        return _parsed(data, "standard input", "standard input")
    return _parsed(data, str(path), path.parent.name if path.name == _TRANSCRIPT else path.name)


def _path(given: str) -> Path:
    """The file that is meant; it need not exist."""
    path = Path(given)
    try:
        if (path / _TRANSCRIPT).is_file():
            return path / _TRANSCRIPT
        if path.exists() or os.sep in given or path.suffix:
            return path
    except (OSError, ValueError):
        return path  # reading it tells what is wrong with its name
    return _stored(given)


def _stored(beginning: str) -> Path:
    """The transcript of the session in Amplifier's folder whose id this is, or begins so.

    Raises:
        CommandError: no session, or several.
    """
    folder = Path(os.environ.get("AMPLIFIER_HOME") or "~/.amplifier").expanduser() / "projects"
    every = {path.parent.name: path for path in folder.glob(f"*/sessions/*/{_TRANSCRIPT}")}
    found = [beginning] if beginning in every else sorted(name for name in every if name.startswith(beginning))
    if not found:
        raise CommandError(f"there is no file {beginning}, and no session in {folder} has this id")
    if len(found) > 1:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        names = ", ".join(found[:_NAMED])
        raise CommandError(
            f"the ids of {len(found)} sessions begin with {beginning!r}: {names}{more}; give more of the id"
        )
    return every[found[0]]


def _parsed(data: bytes, source: str, name: str) -> Recording:
    """The recording in a file's bytes; `source` is what errors call the file."""
    rows: list[JsonRow] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        try:
            value = _value(line, where)
        except CommandError:
            if number == len(lines) and rows and line.lstrip().startswith(b"{"):
                return Recording(name, rows, where)
            raise
        if not rows and isinstance(value, dict) and "format" in value and "role" not in value:
            continue  # the header of a history file
        rows.append(_message(value, where))
    if not rows:
        raise CommandError(f"{source} holds no messages; {_EXPECTED}")
    return Recording(name, rows)


def _value(line: bytes, where: str) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CommandError(f"{where} is not UTF-8 (byte {error.start + 1}); save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise CommandError(f"{where} is not JSON: {error.msg} (column {error.colno}); {_EXPECTED}") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{where} is not JSON that can be read: {error}") from None


def _message(value: Any, where: str) -> JsonRow:
    try:
        return normalise(value)
    except MessageError as error:
        hint = "" if isinstance(value, dict) and "role" in value else f"; {_EXPECTED}"
        raise CommandError(f"{where} is not a message: {error}{hint}") from None


Line: TypeAlias = dict[str, object]
"""A line of a table, by its columns."""
_LARGEST = 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a recording holds. Sizes are in tokens."""

    rows: int
    messages: int
    """Rows that a summariser reads; the other rows belong to the host, such as system rows."""
    tokens: int
    unanswered_calls: list[str]
    """Calls that another message follows before their result, each as `tool in message 7`."""
    orphan_results: int
    """Results that answer no call."""
    roles: list[Line]
    largest: list[Line]
    """The messages that take the most tokens."""


def inspect_rows(rows: Sequence[JsonRow]) -> Inspection:
    """Read the rows of a recording once. No provider is asked, and nothing is written."""
    count = TokenCounter().count
    history = Log(count)
    for row in rows:
        history.add(analyse(row), measure(row, count))
    groups = [*history.groups, *history.open_groups]
    numbers = message_numbers(rows)
    results = sum(len(row.result_ids) for row in history.rows)
    return Inspection(
        rows=len(rows),
        messages=sum(row.rendered for row in history.rows),
        tokens=sum(history.tokens),
        unanswered_calls=[
            f"{call.name or 'a call'} in {named(numbers, at.start + 1)}" for at in groups for call in at.missing
        ],
        orphan_results=results - sum(len(group.answers) for group in groups),
        roles=_roles(history),
        largest=_largest(history, numbers),
    )


def _roles(history: Log) -> list[Line]:
    """The roles in the order in which they come."""
    sizes: dict[str, list[int]] = {}
    for row, size in zip(history.rows, history.tokens, strict=True):
        sizes.setdefault(row.role, []).append(size)
    return [{"role": role, "rows": len(found), "tokens": sum(found)} for role, found in sizes.items()]


def _largest(history: Log, numbers: Sequence[int | None]) -> list[Line]:
    order = sorted(range(len(history)), key=lambda at: -history.tokens[at])[:_LARGEST]
    return [
        {
            "message": numbers[at] or "",
            "tokens": history.tokens[at],
            "role": history.rows[at].role,
            "tool": str(history.rows[at].raw.get("name") or ""),
        }
        for at in order
    ]
