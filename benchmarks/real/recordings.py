"""The recording of this repository, asked for the values that its JSON results hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.sessions import Question, Session, recorded
from benchmarks.tokens import Row

_IDENTITY = "reservation_id"


def load_all() -> list[Session]:
    """Returns the airline desk with its questions."""
    rows = tuple(recorded())
    return [Session(name="airline", rows=rows, questions=tuple(_questions(rows)))]


def _questions(rows: Sequence[Row]) -> Iterator[Question]:
    """Yields questions for user, first flight and payment of each reservation, by the last result about it."""
    newest: dict[str, tuple[int, dict[str, Any]]] = {}
    for at, row in enumerate(rows):
        held = _object(row)
        if isinstance(held.get(_IDENTITY), str):
            newest[held[_IDENTITY]] = (at, held)
    for identity, (at, held) in newest.items():
        for kind, value in _values(held):
            asked = f"What is the {kind} of reservation {identity}?"
            yield Question(asked, (value,), sources=(at,), subject=identity)


def _object(row: Row) -> dict[str, Any]:
    try:
        held = json.loads(row["content"]) if row["role"] == "tool" else {}
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def _values(held: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "user id", held["user_id"]
    for name, field, shown in (("flights", "flight_number", "first flight"), ("payment_history", "amount", "payment")):
        if held.get(name):
            yield shown, str(held[name][0][field])
