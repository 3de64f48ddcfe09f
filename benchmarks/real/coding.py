"""Recorded coding sessions: two of pi's own fixtures, and Claude Code histories of getspecstory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.real import DATA, half, read
from benchmarks.real.pi import row_of
from benchmarks.sessions import Session, called
from benchmarks.tokens import Row

SETS = ("pi-mono", "specstory")
COMPACTED = "packages/coding-agent/test/fixtures/before-compaction.jsonl"
"""The fixture of pi that holds its own summaries."""
_ID = re.compile(r"<!-- Claude Code Session ([0-9a-f]{8})")
_TURN = re.compile(r"(?m)^_\*\*(User|Agent)( - sidechain)? \([^)\n]*\)\*\*_$")
_TOOL = re.compile(
    r'(?s)<tool-use data-tool-type="(\w+)" data-tool-name="(\w+)"><details>\n<summary>.*?</summary>\n(.*)'
)
_THOUGHT = re.compile(r"(?s)<think>.*?</think>")
_END = re.compile(r"\n*(?:```)?\n</details></tool-use>\s*(?:---\s*)?\Z|\n---\s*\Z")


def load_all(sealed: bool = False, data: Path = DATA) -> list[Session]:
    """All sessions of one half."""
    count = sum(len(half(name, sealed)) for name in SETS)
    return [load(number, sealed, data) for number in range(count)]


def load(number: int, sealed: bool = False, data: Path = DATA) -> Session:
    """One session of one half, by its place among all."""
    name, path = [(name, path) for name in SETS for path in half(name, sealed)][number]
    text = read(name, path, sealed, data).decode()
    return _history(text) if name == "specstory" else Session(name=f"pi-mono-{Path(path).stem}", rows=tuple(_pi(text)))


@dataclass(frozen=True, slots=True)
class Cut:
    """A compaction that pi recorded."""

    at: int
    """Rows before it."""
    kept: int
    """The first of them that its next request still holds."""
    summary: str


def cuts(data: Path = DATA) -> tuple[Session, list[Cut]]:
    """The session that pi compacted, and where."""
    lines = read("pi-mono", COMPACTED, data=data).decode().splitlines()

    def rows(end: int) -> tuple[Row, ...]:
        return tuple(_pi("\n".join(lines[:end])))

    made = [(at, one) for at, one in enumerate(map(json.loads, lines)) if one["type"] == "compaction"]
    found = [Cut(len(rows(at)), len(rows(one["firstKeptEntryIndex"])), one["summary"]) for at, one in made]
    return Session(name=f"pi-mono-{Path(COMPACTED).stem}", rows=rows(len(lines))), found


def _pi(text: str) -> Iterator[Row]:
    """The rows of a session file of pi; what was aborted, and calls without their result, are left out."""
    told = [json.loads(line) for line in text.splitlines()]
    messages = [one["message"] for one in told if one["type"] == "message"]
    answered = {one["toolCallId"] for one in messages if one["role"] == "toolResult"}
    known: set[str] = set()
    for message in messages:
        if message["role"] == "assistant":
            blocks = [one for one in message["content"] if one["type"] != "toolCall" or one["id"] in answered]
            known |= {one["id"] for one in blocks if one["type"] == "toolCall"}
            if any(one["type"] in ("text", "toolCall") for one in blocks):
                yield row_of({**message, "content": blocks})
        elif message["role"] == "user" or message.get("toolCallId") in known:
            yield row_of(message)


def _history(text: str) -> Session:
    """A history that SpecStory wrote."""
    top, *parts = _TURN.split(text)
    rows: list[Row] = []
    for who, sidechain, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if not sidechain:
            rows += _rows(who, _END.sub("", _THOUGHT.sub("", said)).strip(), len(rows))
    return Session(name=f"specstory-{_ID.findall(top)[0]}", rows=tuple(rows))


def _rows(who: str, said: str, number: int) -> list[Row]:
    tool = _TOOL.match(said)
    if tool is None:
        return [{"role": "user" if who == "User" else "assistant", "content": said}] if said else []
    kind, name, inner = tool.groups()
    # What is written comes in a fence too, before the one with the result.
    head, _, result = inner.rpartition("\n```") if kind == "write" else inner.partition("\n```")
    return called(number, name, {"input": head.strip()}, result.partition("\n")[2] or result)
