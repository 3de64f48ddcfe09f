"""Finds the file of a recorded session by name or session id, and reads it in any of the forms of `entries`."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_summarize.errors import CommandError
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.entries import Entries

STDIN = "-"
_TRANSCRIPT = "transcript.jsonl"
_EXPECTED = (
    "a recording is a transcript of Amplifier, a session file of Claude Code or Codex, or messages as OpenAI or "
    "Anthropic take them, one JSON object a line or all in one array"
)
_NAMED = 5
"""Most ids that an error names."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session."""

    name: str
    """Its name in outputs, such as the file's name."""
    rows: list[JsonRow]
    left_out: str = ""
    """The kinds of entries that gave no row, each with its number and its first place; "" without any."""


def open_recording(given: str) -> Recording:
    """Returns the recording that a command names: a file, a session's folder, its id or the beginning of one, or `-`.

    The file has one entry per line, or is one JSON document. Entries that are no messages are left out and reported,
    also a last line that is cut off because the file is still being written.

    Raises:
        CommandError: nothing or more than one session has this name; or the file cannot be read, or holds no message.
    """
    path = None if given == STDIN else _path(given)
    try:
        data = sys.stdin.buffer.read() if path is None else path.read_bytes()
    except (OSError, ValueError) as error:  # a ValueError: the name holds a NUL
        reason = getattr(error, "strerror", None) or error
        raise CommandError(
            f"{given} cannot be read: {reason}; name a file, the id of a stored session, or {STDIN} for standard input"
        ) from None
    if path is None:
        return _parsed(data, "standard input", "standard input")
    return _parsed(data, str(path), path.parent.name if path.name == _TRANSCRIPT else path.name)


def _path(given: str) -> Path:
    """Returns the file that the command's argument names; it need not exist."""
    path = Path(given)
    try:
        if (path / _TRANSCRIPT).is_file():
            return path / _TRANSCRIPT
        if path.exists() or os.sep in given or path.suffix:
            return path
    except (OSError, ValueError):
        return path  # reading it raises an error that says what is wrong
    return _stored(given)


def _stored(beginning: str) -> Path:
    """Returns the transcript of the session in Amplifier's folder whose id is this, or begins with it."""
    folder = Path(os.environ.get("AMPLIFIER_HOME") or "~/.amplifier").expanduser() / "projects"
    every = {path.parent.name: path for path in folder.glob(f"*/sessions/*/{_TRANSCRIPT}")}
    found = [beginning] if beginning in every else sorted(name for name in every if name.startswith(beginning))
    if not found:
        raise CommandError(f"there is no file {beginning}, and no session in {folder} has this id")
    if len(found) > 1:
        names = ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
        raise CommandError(f"the ids of {len(found)} sessions begin with {beginning!r}: {names}; give more of the id")
    return every[found[0]]


def _parsed(data: bytes, source: str, name: str) -> Recording:
    """Returns the recording in a file's bytes; `source` is what errors call the file."""
    text, entries = data.decode("utf-8-sig", "replace"), Entries()
    whole = _value(text)
    values = {"line 1": whole}
    if isinstance(whole, Exception):
        lines = enumerate(text.split("\n"), 1)
        values = {f"line {number:,}": _value(line) for number, line in lines if line.strip(" \t\r")}
    if isinstance(next(iter(values.values()), None), Exception):
        raise CommandError(f"{source} cannot be read as JSON: {whole}; {_EXPECTED}")
    for place, value in values.items():
        if isinstance(value, Exception):
            entries.leave_out("not in JSON", place)
        else:
            entries.read(value, place)
    if not (rows := entries.rows):
        left_out = ", only ".join(filter(None, ["no messages", entries.left_out()]))
        raise CommandError(f"{source} holds {left_out}; {_EXPECTED}")
    return Recording(name, rows, entries.left_out())


def _value(text: str) -> Any:
    """Returns the value of a JSON text, or the error that says why it has none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return error
