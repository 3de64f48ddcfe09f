"""Recorded coding sessions: two of pi's own fixtures, and Claude Code histories of getspecstory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.real import DATA, half, read
from benchmarks.real.pi import row_of
from benchmarks.sessions import Session, called
from benchmarks.tokens import Row

_ID = re.compile(r"<!-- Claude Code Session ([0-9a-f]{8})")
_TURN = re.compile(r"(?m)^_\*\*(User|Agent)( - sidechain)? \([^)\n]*\)\*\*_$")
_TOOL = re.compile(
    r'(?s)<tool-use data-tool-type="(\w+)" data-tool-name="(\w+)"><details>\n<summary>.*?</summary>\n(.*)'
)
_THOUGHT = re.compile(r"(?s)<think>.*?</think>")
_END = re.compile(r"\n*(?:```)?\n</details></tool-use>\s*(?:---\s*)?\Z|\n---\s*\Z")


def load_all(sealed: bool = False, data: Path = DATA) -> list[Session]:
    """Returns all sessions of one half; each name begins with its set."""
    texts = [(path, read("pi-mono", path, sealed, data).decode()) for path in half("pi-mono", sealed)]
    sessions = [Session(name=f"pi-mono/{Path(path).stem}", rows=tuple(_pi(text.splitlines()))) for path, text in texts]
    return sessions + [_history(read("specstory", path, sealed, data).decode()) for path in half("specstory", sealed)]


def _pi(lines: Sequence[str]) -> Iterator[Row]:
    """Yields the rows of a session file of pi, without what was aborted and calls that have no result."""
    told = [json.loads(line) for line in lines]
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
    """Reads a history that SpecStory wrote."""
    top, *parts = _TURN.split(text)
    rows: list[Row] = []
    for who, sidechain, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if not sidechain:
            rows += _rows(who, _END.sub("", _THOUGHT.sub("", said)).strip(), len(rows))
    return Session(name=f"histories/{_ID.findall(top)[0]}", rows=tuple(rows))


def _rows(who: str, said: str, number: int) -> list[Row]:
    tool = _TOOL.match(said)
    if tool is None:
        return [{"role": "user" if who == "User" else "assistant", "content": said}] if said else []
    kind, name, inner = tool.groups()
    # What a call writes is in a fence too, before the fence with the result.
    head, _, result = inner.rpartition("\n```") if kind == "write" else inner.partition("\n```")
    return called(number, name, {"input": head.strip()}, result.partition("\n")[2] or result)
