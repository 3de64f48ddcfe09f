"""Finds recorded sessions: those that Amplifier and Claude Code store, by id, by folder, and from standard input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from context_summarize.errors import SessionFileError
from context_summarize.messages.text import content_text
from context_summarize.replay.claude_code import Answers, Line, is_line, read_line
from context_summarize.replay.session_files import Recording, parse_recording, read_recording

Program = Literal["amplifier", "claude-code"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
_TRANSCRIPT = "transcript.jsonl"
_FIRST_WORDS = 200
"""Characters of the first message that are kept."""
_LONGEST = 10_000_000
"""Bytes of a line that is read for its first words."""
_NAMED = 5
"""Ids that an error names."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session in a program's folder."""

    id: str
    program: Program
    path: Path
    changed: float
    """When the file was last written, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class SessionSketch:
    """What a stored session begins with."""

    messages: int
    """As a replay counts them: what several lines of Claude Code hold of one answer is one message."""
    bytes: int
    first_words: str
    """The beginning of the first message of a user, on one line; empty if there is none."""


def sessions_folder(program: Program) -> Path:
    """The folder of a program's projects. `AMPLIFIER_HOME` and `CLAUDE_CONFIG_DIR` move it.

    Raises:
        SessionFileError: the user has no home folder.
    """
    variable, default = {
        "amplifier": ("AMPLIFIER_HOME", "~/.amplifier"),
        "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude"),
    }[program]
    try:
        return Path(os.environ.get(variable) or default).expanduser() / "projects"
    except RuntimeError as error:
        raise SessionFileError(f"no folder of sessions: {error}; set {variable} or HOME, or name a file") from None


def stored_sessions(program: Program = "amplifier") -> list[StoredSession]:
    """The sessions of a program, newest first; empty where the program has stored none.

    Raises:
        SessionFileError: the user has no home folder.
    """
    pattern = f"*/sessions/*/{_TRANSCRIPT}" if program == "amplifier" else "*/*.jsonl"
    found = []
    for path in sessions_folder(program).glob(pattern):
        name = path.parent.name if program == "amplifier" else path.stem
        try:
            stat = path.stat()
        except OSError:
            continue  # it went while it was listed, or may not be read
        if path.is_file() and stat.st_size:
            found.append(StoredSession(name, program, path, stat.st_mtime))
    return sorted(found, key=lambda session: (-session.changed, session.id))


def sketch(session: StoredSession) -> SessionSketch:
    """Count a session's messages and read its first words. A damaged last line does not count.

    Raises:
        SessionFileError: the file cannot be read.
    """
    messages, size, words = 0, 0, ""
    unread = b""  # the last line, if it is counted unread
    answers = Answers()
    try:
        with session.path.open("rb") as file:
            for line in file:
                size += len(line)
                if not line.strip():
                    continue
                if session.program == "amplifier" and words:
                    messages, unread = messages + 1, line  # every line of such a file is a message
                    continue
                spoken = _spoken(line)
                if spoken is None or answers.goes_on(spoken.message, spoken.id):
                    continue
                messages += 1
                if not words and spoken.message["role"] == "user":
                    words = _words(spoken.message.get("content"))
    except OSError as error:
        raise SessionFileError(f"{session.path} cannot be read: {error.strerror or error}") from None
    return SessionSketch(messages - (unread != b"" and _spoken(unread) is None), size, words)


def _spoken(line: bytes) -> Line | None:
    """The message of a line; None if it holds none or cannot be read."""
    if len(line) > _LONGEST:
        return Line({"role": ""}, None)
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    read = read_line(value) if is_line(value) else Line(value, None)
    return read if read is not None and isinstance(read.message, dict) and "role" in read.message else None


def _words(content: Any) -> str:
    try:
        text = content if isinstance(content, str) else content_text(content)
    except (TypeError, ValueError, RecursionError):
        return ""
    return " ".join(text[: 10 * _FIRST_WORDS].split())[:_FIRST_WORDS]


# --- what a command names ---------------------------------------------------------------------------------------------


def open_recording(given: str) -> Recording:
    """The recording that a command names: a file, a folder, a session's id or its beginning, or `-`.

    Raises:
        SessionFileError: nothing has this name, several sessions have it, or the file holds no session.
    """
    if given == "-":
        return _from_stdin()
    if not given.strip():
        raise SessionFileError("the name of the session is empty; name a file, a folder, or the id of a stored session")
    path = Path(given)
    if _is_there(path) or _looks_like_a_path(given):
        path = _in_folder(path) if _is_folder(path) else path
        name = path.parent.name if path.name == _TRANSCRIPT and path.parent.name else path.name
        return read_recording(path, name)
    session = find_session(given)
    return read_recording(session.path, session.id)


def find_session(beginning: str) -> StoredSession:
    """The stored session whose id begins so; one whose whole id it is goes first.

    Raises:
        SessionFileError: no session, or several.
    """
    every = [session for program in PROGRAMS for session in stored_sessions(program)]
    found = [session for session in every if session.id == beginning]
    found = found or [session for session in every if session.id.startswith(beginning)]
    if not found:
        raise SessionFileError(
            f"{beginning} is neither a file nor a stored session; `context-summarize sessions` lists the stored ones"
        )
    if len(found) > 1:
        names = _list([session.id for session in found])
        raise SessionFileError(f"{len(found)} sessions begin with {beginning!r}: {names}; give more of the id")
    return found[0]


def _from_stdin() -> Recording:
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise SessionFileError(f"standard input cannot be read: {error.strerror or error}") from None
    return parse_recording(data, "standard input", "standard input")


def _in_folder(folder: Path) -> Path:
    """The session file of a folder: its transcript, or the only JSONL file."""
    if _is_there(folder / _TRANSCRIPT):
        return folder / _TRANSCRIPT
    files = sorted(_jsonl(folder))
    if len(files) == 1:
        return files[0]
    if not files:
        raise SessionFileError(
            f"{folder} is a directory without {_TRANSCRIPT} and without a *.jsonl file; name a session file"
        )
    names = _list([str(path.relative_to(folder)) for path in files])
    raise SessionFileError(f"{folder} is a directory with {len(files)} sessions: {names}; name one of them")


def _jsonl(folder: Path) -> Iterator[Path]:
    """Session files of a folder; of a project or its `sessions`, the transcripts."""
    for pattern in ("*.jsonl", f"*/{_TRANSCRIPT}", f"sessions/*/{_TRANSCRIPT}"):
        found = [path for path in folder.glob(pattern) if path.is_file()]
        if found:
            yield from found
            return


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or holds a NUL
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _looks_like_a_path(given: str) -> bool:
    return any(mark in given for mark in ("/", os.sep, "\0", "\n")) or given.endswith((".jsonl", ".json"))


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
