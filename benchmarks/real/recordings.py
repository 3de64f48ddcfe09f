"""Recordings of this repository: a session with tools, asked for the values that its JSON results hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers.base import calls_of, text_of
from benchmarks.real.chats import Chat, Message, Question

EXAMPLES = Path(__file__).parents[2] / "examples"
_IDENTITY = "reservation_id"


def load_all(folder: Path = EXAMPLES) -> list[Chat]:
    """Every recording that holds such results."""
    chats = (_chat(path) for path in sorted(folder.glob("*.jsonl")))
    return [chat for chat in chats if chat.questions]


def _chat(path: Path) -> Chat:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    messages = tuple(_message(row) for row in rows)
    return Chat(f"recording-{path.stem}", messages, tuple(_questions(messages)))


def _message(row: dict[str, Any]) -> Message:
    # A call is a part of what its row says, for the tail that a view is compared with too.
    extra = {key: value for key, value in row.items() if key not in ("role", "content")}
    return Message(row["role"], text_of(row), {**extra, "content": row["content"]} if calls_of(row) else extra)


def _questions(messages: tuple[Message, ...]) -> Iterator[Question]:
    """Who made each reservation, its first flight and what was paid, as the last result about it says."""
    newest: dict[str, tuple[int, dict[str, Any]]] = {}
    for at, message in enumerate(messages):
        held = _object(message)
        if isinstance(held.get(_IDENTITY), str):
            newest[held[_IDENTITY]] = (at, held)
    for identity, (at, held) in newest.items():
        for path, value in _values(held):
            text = f"What is the {path} of reservation {identity}?"
            yield Question(path, text, value, (at,), (value,), subject=identity)


def _object(message: Message) -> dict[str, Any]:
    if message.role != "tool":
        return {}
    try:
        held = json.loads(message.content)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def _values(held: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "user id", held["user_id"]
    for name, field, shown in (("flights", "flight_number", "first flight"), ("payment_history", "amount", "payment")):
        if held.get(name):
            yield shown, str(held[name][0][field])
