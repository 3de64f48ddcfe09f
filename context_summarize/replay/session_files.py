"""Reads recorded sessions."""

from __future__ import annotations

import json
from pathlib import Path

from context_summarize.errors import MessageError, SessionFileError
from context_summarize.messages.checking import normalise
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.lines import is_header


def read_session(path: Path) -> list[JsonRow]:
    """The messages of a JSONL file, one per line. Blank lines and the header of a `persistence` file are skipped.

    Raises:
        SessionFileError: the file cannot be read or is empty, or a line is not UTF-8, not JSON or not a message.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise SessionFileError(f"{path} is a directory; expected a file with one JSON message per line") from None
    except OSError as error:
        raise SessionFileError(f"{path} cannot be read: {error.strerror or error}") from None
    rows = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip() and not (number == 1 and is_header(line)):
            rows.append(_read_line(line, f"{path}, line {number}"))
    if not rows:
        raise SessionFileError(f"{path} holds no messages; expected one JSON message per line")
    return rows


def _read_line(line: bytes, where: str) -> JsonRow:
    try:
        return normalise(json.loads(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise SessionFileError(f"{where} is not UTF-8 (byte {error.start + 1}); save the file as UTF-8") from None
    except MessageError as error:
        raise SessionFileError(f"{where} is not a message: {error}") from None
    except json.JSONDecodeError as error:
        raise SessionFileError(f"{where} is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise SessionFileError(f"{where} is not JSON that can be read: {error}") from None
