"""The interface of all contestants, the terms that they share, and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.clock import LoopClock
from benchmarks.sessions import assistant
from benchmarks.summarisers import DoesNotFit as DoesNotFit
from benchmarks.summarisers import Summariser
from benchmarks.tokens import Count, measure
from benchmarks.tokens import Row as Row
from benchmarks.tokens import calls_of as calls_of
from benchmarks.tokens import text_of as text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms that are the same for every contestant."""

    summariser: Summariser
    """It may wait, raise `DoesNotFit`, or fail as a model does that is down."""
    count: Count
    """Counts the tokens of a text."""
    budget: int
    """Tokens that one request may hold."""
    trigger: float = 0.7
    """Share of the budget at which a contestant summarises."""
    keep: int = 10
    """Newest rows that stay verbatim, if a contestant has a setting for it."""
    system: str = ""
    """The system prompt. A contestant that keeps it outside the conversation leaves out its rows."""
    mean_row: float = 100.0
    """Tokens of a row on average, for a contestant that counts rows only."""
    clock: LoopClock
    """The clock of contestants that retry or pause."""

    @property
    def trigger_tokens(self) -> int:
        """Tokens at which a contestant summarises, system prompt included."""
        return int(self.budget * self.trigger)

    @property
    def system_rows(self) -> list[Row]:
        """The system prompt as a view shows it."""
        return [spoken("system", self.system)] if self.system else []

    def size(self, rows: Sequence[Row]) -> int:
        """Counts the tokens of rows."""
        return sum(measure(row, self.count) for row in rows)


class Contestant:
    """One context manager in the benchmark."""

    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions are saved with its figures."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Settings that differ from its defaults."""

    def __init__(self, terms: Terms) -> None:
        """Raises ImportError if the peer is not installed."""
        self._terms = terms

    async def add(self, row: Row) -> None:
        """Appends one row to the conversation."""
        raise NotImplementedError

    async def view(self) -> list[Row]:
        """Returns the rows of the next request, or raises what the peer would raise into its host."""
        raise NotImplementedError

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        """Converts rows to the peer's messages and back, without a system prompt that the peer keeps elsewhere."""
        return list(rows)

    async def close(self) -> None:
        """Releases all that the contestant holds."""


class Peer(Contestant):
    """A library with messages of its own."""

    system_apart = True
    """True if the library keeps the system prompt outside the conversation."""
    too_long: Callable[[str], Exception] = DoesNotFit
    """Makes the error that the library's own model clients raise if an input does not fit."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._messages: list[Any] = []

    async def add(self, row: Row) -> None:
        self._append(self._messages, row)

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        messages: list[Any] = []
        for row in rows:
            self._append(messages, row)
        return self._rows(messages)

    def _append(self, messages: list[Any], row: Row) -> None:
        if not (self.system_apart and row["role"] == "system"):
            self._there(messages, row)

    def _rows(self, messages: Sequence[Any]) -> list[Row]:
        return [row for message in messages for row in self._back(message)]

    def _there(self, messages: list[Any], row: Row) -> None:
        """Appends a row as a message of the library, or to the last message."""
        raise NotImplementedError

    def _back(self, message: Any) -> Iterable[Row]:
        """Returns the rows of a message."""
        raise NotImplementedError

    async def _ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        try:
            return await self._terms.summariser.ask(shown, instructions, max_output)
        except DoesNotFit as error:
            raise self.too_long(str(error)) from error


def spoken(role: str, text: str, calls: Sequence[tuple[str, str, Any]] = ()) -> Row:
    """Returns a row as Amplifier's loops store it; calls are (id, name, arguments)."""
    return {**assistant(text, calls), "role": role}


def result(call_id: str, name: str, text: str) -> Row:
    """Returns a tool row."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}
