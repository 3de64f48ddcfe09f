"""Tool calls, commands and error lines in rendered rows."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence

from context_summarize.facts.patterns import one_line, shortened
from context_summarize.transcript.calls import calls_in
from context_summarize.transcript.rows import RenderedRow

MAX_ERROR = 200
MAX_COMMAND = 200

_STRONG_ERROR = re.compile(r"[A-Za-z]\w{0,80}(?:Error|Exception)(?=:)|(?:Error|ERROR|Fatal|FATAL|fatal):")
_ERROR = re.compile(r"Error(?![a-z])|ERROR|Exception(?![a-z])|Traceback|(?i:\bfailed\b|\bfatal\b|\bdenied\b)")
_NO_ERROR = re.compile(
    r"[\s\d:>+|-]{0,40}(?:(?:(?i:raises?)|except|from|import|class|def|catch|throws?|return|assert|if|elif)\b|#|//|\*|\})"
    r"|Traceback \(most recent call last\):\s*$"
    r"|(?:[^\n]{0,120}\D)?\b0 (?:failed|errors)\b"
)
_EXIT = re.compile(
    r"(?i:\bexit(?:ed)?(?:[ _-]?(?:with|code|status)){0,3}|\breturn[ _]?code)"
    r"[\"']?\s{0,2}[:=]?\s{0,2}(-?\d{1,5})(?!\w|\.\d)"
)


def command_of(arguments: str) -> str | None:
    """The shell command in a call's arguments: `command` or `cmd`. With a path beside it, it is an editor's command."""
    if '"command"' not in arguments and '"cmd"' not in arguments:
        return None
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or "path" in given:
        return None
    command = given.get("command", given.get("cmd"))
    if isinstance(command, list) and all(isinstance(part, str) for part in command):
        command = " ".join(command)
    return command.strip() or None if isinstance(command, str) else None


def exit_figure(result: str) -> str:
    """The last exit status that a result tells, as it is written; "" where it tells none."""
    found = list(_EXIT.finditer(result))
    return found[-1][1] if found else ""


def outcome_of(result: str) -> str | None:
    """The outcome that a shell result reports: `exit N`, else its last error line."""
    if status := exit_figure(result):
        return f"exit {status}"
    lines = error_lines(result, strict=False)
    return lines[-1][:100] if lines else None


def commands_in(rows: Sequence[RenderedRow]) -> Iterator[list[tuple[int, str]]]:
    """(row index, `command → outcome`) of the shell calls that end with each row, and last of those still open.

    The first result holds the first call's outcome, and so on.
    """
    calls: deque[tuple[int, str | None]] = deque()
    for index, row in enumerate(rows):
        if row.role == "tool" and calls:
            called = calls.popleft()
            yield [] if called[1] is None else _closed(called, outcome_of(row.text))
        elif row.role != "tool":
            yield [one for call in calls for one in _closed(call, None)]
            given = calls_in(row.text) if row.role == "assistant" else ()
            calls = deque((index, command_of(arguments)) for _, arguments in given)
    yield [one for call in calls for one in _closed(call, None)]


def _closed(call: tuple[int, str | None], outcome: str | None) -> list[tuple[int, str]]:
    index, command = call
    if command is None:
        return []
    command = shortened(one_line(command), MAX_COMMAND)
    return [(index, f"{command} → {outcome}" if outcome else command)]


def error_lines(text: str, *, strict: bool) -> list[str]:
    """The lines that report an error, at most 200 characters each; `strict` (for prose) requires `SomeError:`."""
    pattern = _STRONG_ERROR if strict else _ERROR
    found: list[str] = []
    at = 0
    while hit := pattern.search(text, at):
        start = text.rfind("\n", at, hit.start()) + 1 or at
        end = text.find("\n", hit.end())
        at = end = len(text) if end < 0 else end
        if end - start > MAX_ERROR:
            start = max(start, min(hit.start() - 60, end - MAX_ERROR))
        line = text[start : start + MAX_ERROR] if end - start > MAX_ERROR else text[start:end]
        if line.strip() and not _NO_ERROR.match(line.strip()):
            found.append(line.strip())
    return found
