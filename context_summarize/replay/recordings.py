"""Reads the recording that a command names, in any form: of Amplifier, OpenAI, Anthropic, Claude Code or Codex."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_summarize.errors import CommandError, MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import arguments_of, blocks_of, id_of, with_results_apart
from context_summarize.messages.rows import JsonRow
from context_summarize.transcript.marks import counted

STDIN = "-"
_TRANSCRIPT = "transcript.jsonl"
_EXPECTED = (
    "a recording is a transcript of Amplifier, a session file of Claude Code or Codex, or messages as OpenAI or "
    "Anthropic take them, one JSON object a line or all in one array"
)
_NAMED = 5
"""Most ids, and most keys, that an error names."""
_SYNTHETIC = {"amplifier:input": {"origin": "synthetic"}}
"""Mark of a user row that the program has written."""
_BESIDE = ("session_meta", "event_msg")
"""Lines of Codex beside the items: the header, and events, which repeat texts of items for the screen."""
_ITEMS = "items"
"""Name of an answer of the Responses API: its items follow each other."""


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
    try:
        text, entries = data.decode("utf-8-sig"), _Entries()
    except UnicodeDecodeError as error:
        raise CommandError(f"{source} is not in UTF-8 (byte {error.start + 1:,}); convert it, as with iconv") from None
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


class _Entries:
    """Reads the entries of a recording in order. Results become separate rows, as in Amplifier."""

    def __init__(self) -> None:
        self.rows: list[JsonRow] = []
        """The rows of all entries, each of them checked."""
        self._left_out: dict[str, list[Any]] = {}
        """Kind of entry → how many there were, and the place of the first."""
        self._answer: tuple[str, JsonRow] | None = None
        """Id and row of an answer that may continue: Claude Code writes a line for each block, with results between."""
        self._typed: list[Any] = []
        """Texts that the user typed while the agent worked, and that it has not seen."""

    def left_out(self) -> str:
        """Returns the kinds of entries that gave no row, each with its number and its first place; "" without any."""
        kinds = self._left_out.items()
        return ", ".join(f"{counted(n, 'entry', 'entries')} {kind} (first: {place})" for kind, (n, place) in kinds)

    def leave_out(self, kind: str, place: str) -> None:
        """Counts an entry that gives no row."""
        self._left_out.setdefault(kind, [0, place])[0] += 1

    def read(self, value: Any, place: str) -> None:
        """Reads a value of JSON: a message, a list of messages, or an object with `messages` or `input`."""
        value = _request_of(value)
        if isinstance(value, dict) and isinstance(value.get("messages"), list):
            if value.get("system"):
                self._add({"role": "system", "content": value["system"]}, place)
            value = value["messages"]
        if not isinstance(value, list):
            self._read(value, place)
            return
        for number, entry in enumerate(value, 1):
            self._read(entry, ", ".join(filter(None, [place, f"entry {number}"])))

    def _read(self, entry: Any, place: str) -> None:
        if isinstance(entry, dict) and (message := _message_of(entry)) is not None:
            self._add(message, place, _ITEMS if message.get("role") == "assistant" else "")
        elif not isinstance(entry, dict) or "role" in entry:
            self._add(entry, place)
        elif isinstance(entry.get("message"), dict):
            self._read_line(entry, entry["message"], place)
        elif entry.get("type") == "queue-operation":
            self._read_typed(entry, place)
        elif entry.get("type") not in _BESIDE and ("format" not in entry or self.rows):  # else it is a header
            keys = ", ".join([*entry][:_NAMED]) or "none"
            self.leave_out(f"of type {entry['type']!r}" if "type" in entry else f"with the keys {keys}", place)

    def _read_line(self, line: Mapping[str, Any], message: Mapping[str, Any], place: str) -> None:
        """Reads a line of Claude Code, or of another program that keeps a message under the key `message`."""
        if line.get("isSidechain") is True:
            self.leave_out("of a sub-agent", place)
        elif line.get("isCompactSummary") is True and self.rows:
            self.leave_out("with a summary of messages before it", place)
        elif message.get("model") == "<synthetic>":
            self.leave_out("with an error of the program", place)
        else:
            is_own = line.get("isMeta") is True or line.get("isCompactSummary") is True
            marks = _SYNTHETIC if is_own else {}
            time = {"timestamp": line["timestamp"]} if line.get("timestamp") else {}
            row = {key: message[key] for key in ("role", "content") if key in message}
            metadata = {"metadata": {**marks, **time}} if marks or time else {}
            self._add({**row, **metadata}, place, str(message.get("id") or ""))

    def _read_typed(self, line: Mapping[str, Any], place: str) -> None:
        if line.get("operation") == "enqueue":
            self._typed.append(line.get("content"))
        elif line.get("operation") == "popAll":  # the user has taken it back
            self._typed.clear()
        elif self._typed:
            content = self._typed.pop(0)
            if line.get("operation") == "remove" and isinstance(content, str):  # else a line of its own follows
                self.rows.append({"role": "user", "content": content})

    def _add(self, entry: Any, place: str, answer: str = "") -> None:
        """Adds a message; `answer` is the id of an answer that may come in parts."""
        try:
            row = normalise(entry)
        except MessageError as error:
            self.leave_out(f"in no known form: {error}", place)
            return
        if self._answer and self._answer[0] == answer != "" and row["role"] == "assistant" and blocks_of(row):
            self._answer[1]["content"] = [*self._answer[1]["content"], *blocks_of(row)]
            return
        for part in with_results_apart(row):
            self.rows.append(part)
            if part["role"] == row["role"]:  # else it is a result
                self._answer = (answer, part) if blocks_of(part) else None


def _request_of(value: Any) -> Any:
    """Returns a request of OpenAI's Responses API as one with `system` and `messages`; any other value as it is."""
    if not isinstance(value, dict) or "type" in value or not isinstance(asked := value.get("input"), list | str):
        return value
    return {
        "system": value.get("instructions"),
        "messages": [{"role": "user", "content": asked}] if isinstance(asked, str) else asked,
    }


def _message_of(entry: Mapping[str, Any]) -> JsonRow | None:
    """Returns the message of an item of that API, bare or in a line of Codex; None if it is none.

    A call becomes an assistant's block, its output a tool row. Reasoning stays a block of the answer that follows it.
    """
    kind, call_id, payload = entry.get("type"), id_of(entry.get("call_id")), entry.get("payload")
    if kind == "response_item" and isinstance(payload, dict):
        message, time = _message_of(payload), entry.get("timestamp")
        return {**message, "metadata": {"timestamp": time}} if message and time else message
    if kind == "message" and "role" in entry:
        return dict(entry)
    if kind == "reasoning":
        return {"role": "assistant", "content": [dict(entry)]}
    if not isinstance(kind, str) or not call_id:
        return None
    if kind.endswith("_call"):
        given = next((entry[key] for key in ("arguments", "input", "action") if key in entry), None)
        named = {"id": call_id, "name": str(entry.get("name") or kind.removesuffix("_call"))}
        return {"role": "assistant", "content": [{"type": "tool_call", **named, "input": arguments_of(given)}]}
    output = entry.get("output")
    said = output["content"] if isinstance(output, dict) and "content" in output else output
    return {"role": "tool", "tool_call_id": call_id, "content": said or ""} if kind.endswith("_output") else None
