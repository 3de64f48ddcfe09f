"""What the contestants of the benchmarks share: the terms that all get alike, the small interface, rows."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from benchmarks.clock import LoopClock
from benchmarks.sessions import assistant
from benchmarks.summarisers import DoesNotFit as DoesNotFit
from benchmarks.tokens import Count, measure
from benchmarks.tokens import Row as Row
from benchmarks.tokens import calls_of as calls_of
from benchmarks.tokens import text_of as text_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What every contestant gets alike."""

    ask: Callable[[str, str, int | None], Awaitable[str]]
    """The summariser: from the text that it is shown, the instructions beside it and the most tokens that it may write
    (None: its own limit), to its answer. It may wait, raise `DoesNotFit`, or raise whatever a model that is down
    raises."""
    count: Count
    """Tokens of a text."""
    budget: int
    """Tokens that one request may hold."""
    trigger: float = 0.7
    """Share of the budget whose use makes a contestant summarise."""
    keep: int = 10
    """Newest rows that stay verbatim, where that can be set."""
    system: str = ""
    """The system prompt. A contestant that keeps it outside the conversation leaves out the rows that hold it."""
    mean_row: float = 100.0
    """Tokens of a row on average, for a contestant that counts rows only."""
    clock: LoopClock
    """Where contestants that retry or pause take the time from."""

    @property
    def trigger_tokens(self) -> int:
        """Tokens at which a contestant summarises, system prompt included."""
        return int(self.budget * self.trigger)

    @property
    def system_rows(self) -> list[Row]:
        """The system prompt as a view shows it."""
        return [spoken("system", self.system)] if self.system else []

    def size(self, rows: Sequence[Row]) -> int:
        """Tokens of rows, counted the same way for all."""
        return sum(measure(row, self.count) for row in rows)

    def is_system_prompt(self, row: Row) -> bool:
        """True for a row that `system` holds already."""
        return bool(row["role"] == "system" and text_of(row) in self.system)


class Contestant(Protocol):
    """One context manager in the benchmark."""

    packages: tuple[str, ...]
    """Distributions whose versions belong beside its figures."""

    def __init__(self, terms: Terms) -> None:
        """Raises ImportError where the peer is not installed."""

    async def add(self, row: Row) -> None:
        """Append one row to the conversation."""

    async def view(self) -> list[Row]:
        """The rows of the next request. What the peer would raise into its host is raised here."""

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        """Rows to the peer's own messages and back; equal to `rows` when nothing is lost."""

    async def close(self) -> None:
        """Let go of everything."""


# --- rows ---------------------------------------------------------------------------------------------------------


def spoken(role: str, text: str, calls: Sequence[tuple[str, str, Any]] = (), meta: Any = None) -> Row:
    """A row as Amplifier's loops store it; calls are (id, name, arguments)."""
    row = {**assistant(text, calls), "role": role}
    return row if meta is None else {**row, "metadata": meta}


def result(call_id: str, name: str, text: str, meta: Any = None) -> Row:
    """A tool row."""
    row = {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}
    return row if meta is None else {**row, "metadata": meta}


# --- peers that wait without `await` ------------------------------------------------------------------------------


async def run_blocking(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call a blocking function on this event loop; where it reaches `wait_for`, the coroutine here awaits.

    So a peer that can only call its model synchronously waits in the loop's time, virtual or not. A thread could not:
    a loop in virtual time would not know that anybody waits.

    Raises:
        ImportError: greenlet is not installed.
    """
    greenlet = import_module("greenlet")
    worker = greenlet.greenlet(function)
    worker.gr_context = contextvars.copy_context()
    waiting = worker.switch(*arguments, **options)
    while not worker.dead:
        try:
            value = await waiting
        except BaseException as error:  # noqa: BLE001 (a cancellation too belongs to the one who waits)
            waiting = worker.throw(error)
        else:
            waiting = worker.switch(value)
    return cast(T, waiting)


def wait_for(awaitable: Awaitable[T]) -> T:
    """The result of an awaitable, inside a function that `run_blocking` called."""
    return cast(T, import_module("greenlet").getcurrent().parent.switch(awaitable))
