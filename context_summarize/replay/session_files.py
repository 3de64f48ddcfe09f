"""Reads recorded sessions: JSONL and JSON of messages, and the files of Claude Code."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_summarize.errors import MessageError, SessionFileError
from context_summarize.history_file import is_header
from context_summarize.messages.checking import normalise
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.claude_code import is_line, joined, read_line
from context_summarize.replay.cut_lines import is_cut
from context_summarize.replay.numbering import message_numbers, named
from context_summarize.replay.remarks import odd_part, remarks_on, remarks_on_odd

EXPECTED = (
    'one JSON message per line, a JSON array of messages, an object {"messages": […]}, or a session file of Claude Code'
)
_KEYS = 120
"""Characters of an object's keys that an error names."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session."""

    name: str
    """What outputs call it, such as the name of its file."""
    rows: list[JsonRow]
    remarks: tuple[str, ...] = ()
    """What was mended while it was read, and what requests show otherwise than the recording: a sentence each."""


def read_recording(path: Path, name: str) -> Recording:
    """The recording in a file, under this name.

    Raises:
        SessionFileError: the file cannot be read, or `parse_recording` refuses what it holds.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise SessionFileError(f"{path} is a directory; name a session file in it") from None
    except (OSError, ValueError) as error:  # a ValueError: the name holds a NUL
        reason = getattr(error, "strerror", None) or error
        raise SessionFileError(f"{path} cannot be read: {reason}") from None
    return parse_recording(data, str(path), name)


def read_session(path: Path) -> list[JsonRow]:
    """The messages of a file, without the remarks; errors as `read_recording`."""
    return read_recording(path, path.name).rows


def parse_recording(data: bytes, source: str, name: str) -> Recording:
    """The recording in a file's bytes, in UTF-8.

    The bytes are JSONL (one message per line; blank lines and the header of a `persistence` file are skipped), one JSON
    array of messages, one object `{"messages": […], "system"?: …}`, or a session file of Claude Code. The last line of
    JSONL may be cut off, as in a file that is still being written: it is left out, and a remark names it.

    Args:
        source: what errors and remarks call the file.

    Raises:
        SessionFileError: there is no message, or a line is not UTF-8, not JSON or not a message.
    """
    data = data.removeprefix(_BOM)
    document = _document(data, source)
    rows, mended = _from_lines(data, source) if document is None else _from_document(document, source)
    if not rows:
        raise SessionFileError(f"{source} holds no messages; expected {EXPECTED}")
    return Recording(name, rows, (*mended, *remarks_on(rows)))


def parse_session(data: bytes, source: str) -> list[JsonRow]:
    """The messages of a file's bytes, without the remarks; arguments and errors as `parse_recording`."""
    return parse_recording(data, source, source).rows


# --- one message per line ---------------------------------------------------------------------------------------------


def _from_lines(data: bytes, source: str) -> tuple[list[JsonRow], tuple[str, ...]]:
    """The messages, and what was mended."""
    found: list[tuple[JsonRow, str | None]] = []
    mended: list[str] = []
    odd: list[str] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip() or (number == 1 and is_header(line)):
            continue
        where = f"{source}, line {number}"
        if number == len(lines) and found and is_cut(line):
            mended.append(f"{where} is cut off, as in a file that is still being written; the lines before it are read")
            break
        value = _json(line, where)
        if not is_line(value):
            found.append((_message(value, where, odd), None))
        elif (read := read_line(value)) is not None:
            found.append((_message(read.message, where, odd), read.id))
    rows, apart = joined(found)
    return rows, (*mended, *_told_apart(rows, apart), *remarks_on_odd(odd))


def _told_apart(rows: Sequence[JsonRow], apart: Sequence[int]) -> Iterator[str]:
    if apart:
        numbers = message_numbers(rows)
        parts = "1 part of an answer stands" if len(apart) == 1 else f"{len(apart):,} parts of answers stand"
        yield (
            f"{parts} apart from the earlier parts, other messages between them (the first is "
            f"{named(numbers, apart[0] + 1)}); each is kept where it stands, as a message of its own"
        )


def _message(value: Any, where: str, odd: list[str]) -> JsonRow:
    """The message; what is odd in it goes to `odd`, with its place."""
    try:
        row = normalise(value)
    except MessageError as error:
        raise SessionFileError(f"{where} is not a message: {error}{_seen(value)}; expected {EXPECTED}") from None
    if (part := odd_part(row)) is not None:
        odd.append(f"{where}: {part}")
    return row


def _seen(value: Any) -> str:
    """The keys of an object that is no message, and those that it would need."""
    if not isinstance(value, dict) or "role" in value:
        return ""
    keys = ", ".join(map(str, value))
    seen = textwrap.shorten(keys, _KEYS, placeholder=" …") if keys else "no keys"
    return f"; this object has {seen}, not role and content (one message) or messages (a list of them)"


def _json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SessionFileError(f"{where} is not UTF-8 (byte {error.start + 1}); save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise SessionFileError(
            f"{where} is not JSON: {error.msg} (column {error.colno}); expected {EXPECTED}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise SessionFileError(f"{where} is not JSON that can be read: {error}") from None


# --- one document ---------------------------------------------------------------------------------------------------


def _document(data: bytes, source: str) -> Any:
    """The JSON value that the whole file is; None if the file has one value per line."""
    first = next((line for line in data.split(b"\n") if line.strip()), b"").strip()
    if first.startswith(b"["):
        return _whole(data, source)
    if not first.startswith(b"{"):
        return None
    try:
        value = json.loads(first.decode("utf-8"))
    except (ValueError, RecursionError):
        # Either an object over several lines, or JSONL whose first line is damaged.
        return _whole(data, source) if first == b"{" or first.endswith((b",", b"[", b"{")) else None
    return value if isinstance(value, dict) and "messages" in value and "role" not in value else None


def _whole(data: bytes, source: str) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise SessionFileError(
            f"{source}, line {error.lineno} is not JSON: {error.msg} (column {error.colno}); expected {EXPECTED}"
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SessionFileError(f"{source}, line {line} is not UTF-8; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise SessionFileError(f"{source}, line 1 is not JSON that can be read: {error}") from None


def _from_document(document: Any, source: str) -> tuple[list[JsonRow], tuple[str, ...]]:
    """The messages, and what is odd in them."""
    odd: list[str] = []
    if isinstance(document, dict) and "role" in document:
        rows = [_message(document, f"{source}, message 1", odd)]
    else:
        rows = [_message(value, where, odd) for value, where in _values(document, source)]
    return rows, remarks_on_odd(odd)


def _values(document: Any, source: str) -> Iterator[tuple[Any, str]]:
    """(message, where it stands); the `system` of a request's body comes first."""
    messages = document
    if isinstance(document, dict):
        messages, system = document.get("messages"), document.get("system")
        if not isinstance(messages, list):
            keys = ", ".join(sorted(map(str, document)))[:_KEYS]
            got = f"; messages is a {type(messages).__name__}, not a list" if "messages" in document else ""
            raise SessionFileError(f"{source} is an object of {keys or 'nothing'}; expected {EXPECTED}{got}")
        if system:
            yield {"role": "system", "content": system}, f"{source}, system"
    for number, value in enumerate(messages, 1):
        yield value, f"{source}, message {number}"
