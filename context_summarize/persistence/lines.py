"""The lines of a history file: its header, and one JSON object a row."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

from context_summarize.messages.checking import normalise
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.beside import Refused
from context_summarize.persistence.long_lines import decoded, dumped, loaded

FORMAT = "context-summarize history"
VERSION = 1
_LONGEST_HEADER = 4096
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HEADER_START = _encode({"format": FORMAT})[:-1].encode()


def line_of(row: JsonRow) -> bytes:
    """A row as one line, with its end."""
    # As escapes, a lone high surrogate and a lone low one would be read as one character; as bytes they stay two.
    return b"".join([*(piece.encode("utf-8", "surrogatepass") for piece in dumped(row)), b"\n"])


def new_header() -> bytes:
    """The first line of a file that is made now."""
    return line_of({"format": FORMAT, "version": VERSION, "created": datetime.now(UTC).isoformat(timespec="seconds")})


def _row(line: bytes) -> JsonRow | None:
    try:
        return normalise(loaded(decoded(line)))
    except (ValueError, RecursionError):
        return None


def read_rows(path: Path) -> tuple[list[JsonRow], int, int, bool]:
    """(rows, number of damaged lines, bytes of the whole lines, whether the last line is torn)."""
    rows: list[JsonRow] = []
    damaged, whole, torn = 0, 0, False
    with path.open("rb") as file:
        whole += len(file.readline())
        for line in file:
            row = _row(line)
            ended = line.endswith(b"\n")
            if row is not None:
                rows.append(row)
            elif not ended:
                torn = True
            elif line.strip():
                damaged += 1
            whole += len(line) if ended else 0
    return rows, damaged, whole, torn


def is_header(line: bytes) -> bool:
    """True for the first line of a history file of any version."""
    return line.startswith(_HEADER_START)


def check_header(path: Path) -> bool:
    """True for one of our history files; False if the file does not exist yet or its header is torn.

    Raises:
        OSError: the file cannot be read.
        Refused: it is another program's file, or has a later version.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise Refused("it is a folder or a device, not a file; correct persistence.path")
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    if not first.endswith(b"\n") and (_HEADER_START.startswith(first) or first.startswith(_HEADER_START)):
        return False
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise Refused("it is not one of our history files and is left alone; move it away or correct persistence.path")
    if header.get("version") != VERSION:
        raise Refused(
            f"it has version {header.get('version')!r}, not {VERSION}, and is left alone; update the package or move it"
        )
    return True
