"""The sessions that contestants are measured on, each built from the clone alone."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import Row

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "examples" / "airline-desk.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One session."""

    name: str
    title: str
    rows: Callable[[], list[Row]]
    facts: int
    budget: int = 40_000
    """Tokens that a request may hold."""
    other_budget: int | None = None
    """Of a second model, which takes turns with the first one."""
    turns_per_model: int = 200
    """Requests after which they change over."""
    restart: float | None = None
    """Share of the session after which the process ends and a new one goes on."""
    pause_every: int | None = None
    """Requests after which the user is away for a while; then the provider's prompt cache has forgotten the session."""
    pause_seconds: float = 600.0


def recorded(path: Path = RECORDING, copies: int = 1) -> list[Row]:
    """A recording, a message a line, joined `copies` times; ids differ between them, the system prompt comes once."""
    lines = path.read_text("utf-8").splitlines()
    joined = [json.loads(line if copy == 0 else _renamed(line, copy)) for copy in range(copies) for line in lines]
    return [row for at, row in enumerate(joined) if row["role"] != "system" or at < len(lines)]


_ID = re.compile(r"call_(?=\d)|\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{6}\b|(?<=[a-z]_)\d{3,7}\b")
_CHARS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _renamed(line: str, copy: int) -> str:
    """The line with call ids, reservation codes and numbers of users and cards changed, the same way throughout."""

    def turned(match: re.Match[str]) -> str:
        if match[0] == "call_":
            return f"call_{copy}_"
        return "".join(
            chars[(chars.index(char) + 3 * copy) % len(chars)] for char in match[0] for chars in _CHARS if char in chars
        )

    return _ID.sub(turned, line)


def _call(number: int, name: str, arguments: dict[str, Any]) -> Row:
    call_id = f"call_{number:05d}"
    return {
        "role": "assistant",
        "content": [{"type": "tool_call", "id": call_id, "name": name, "input": arguments}],
        "tool_calls": [{"id": call_id, "tool": name, "arguments": arguments}],
    }


def _result(number: int, name: str, text: str) -> Row:
    return {"role": "tool", "tool_call_id": f"call_{number:05d}", "name": name, "content": text}


def endless_turn(calls: int = 400) -> list[Row]:
    """One request of the user, and nothing but tool calls after it; arguments and results are recorded ones."""
    rows: list[Row] = [{"role": "user", "content": "Go through all open reservations and bring them in order."}]
    for number, (name, arguments, text) in enumerate(itertools.islice(_exchanges(), calls)):
        rows += [_call(number, name, arguments), _result(number, name, text)]
    return rows


def _exchanges() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Tool calls of the recording and their results, over and over, ids renamed."""
    for copy in itertools.count():
        rows = [json.loads(_renamed(line, copy)) for line in RECORDING.read_text("utf-8").splitlines()]
        results = {row["tool_call_id"]: row["content"] for row in rows if row["role"] == "tool"}
        for row in rows:
            for call in row.get("tool_calls") or []:
                if results.get(call["id"]):
                    yield call["tool"], call["arguments"], results[call["id"]]


def coding(steps: int = 60, large: int = 115_000) -> list[Row]:
    """A coding session over this project's own sources; every fifth result is a listing of about 30,000 tokens.

    `large` counts characters.
    """
    files = sorted((ROOT / "context_summarize").glob("*.py"))
    whole = "\n".join(file.read_text("utf-8") for file in files)
    rows: list[Row] = []
    for number in range(steps):
        file = files[number % len(files)]
        if number % 6 == 0:
            rows.append(
                {"role": "user", "content": f"Please look into {file.name} next and say what could be simpler."}
            )
        if number % 5 == 2:
            at = number * 7_001 % max(1, len(whole) - large)
            name, arguments, text = "bash", {"command": "cat context_summarize/*.py"}, whole[at : at + large]
        else:
            name, arguments = "read_file", {"path": f"context_summarize/{file.name}"}
            text = file.read_text("utf-8")[:6_000]
        rows += [_call(number, name, arguments), _result(number, name, text)]
        if number % 6 == 5:
            rows.append(
                {"role": "assistant", "content": f"{file.name} is read; its functions are short enough as they are."}
            )
    return rows


def chat(copies: int = 3) -> list[Row]:
    """The spoken part of the recording: no call and no result."""
    rows = [row for row in recorded(copies=copies) if row["role"] != "tool" and not row.get("tool_calls")]
    return [row for row, after in itertools.zip_longest(rows, rows[1:]) if not after or row["role"] != after["role"]]


def scenarios(recording: Path = RECORDING) -> dict[str, Scenario]:
    """All scenarios by name."""
    made: Sequence[Scenario] = (
        Scenario(
            name="airline-480k",
            title="airline desk, 0.48 million tokens",
            rows=lambda: recorded(recording, 4),
            facts=400,
        ),
        Scenario(
            name="airline-120k", title="airline desk, 0.12 million tokens", rows=lambda: recorded(recording), facts=100
        ),
        Scenario(name="one-turn", title="one turn of 400 tool calls", rows=endless_turn, facts=100),
        Scenario(name="coding", title="coding, tool results of 30,000 tokens", rows=coding, facts=100, budget=60_000),
        Scenario(name="chat", title="chat without tools", rows=chat, facts=100),
        Scenario(
            name="two-models",
            title="two models, windows of 32,000 and 200,000, taking turns",
            rows=lambda: recorded(recording, 2),
            facts=200,
            budget=32_000,
            other_budget=200_000,
        ),
        Scenario(
            name="restart",
            title="a new process in mid-session",
            rows=lambda: recorded(recording, 2),
            facts=200,
            restart=0.6,
        ),
        Scenario(
            name="pauses",
            title="the user is away for ten minutes after every 15 requests",
            rows=lambda: recorded(recording, 2),
            facts=200,
            pause_every=15,
        ),
    )
    return {one.name: one for one in made}
