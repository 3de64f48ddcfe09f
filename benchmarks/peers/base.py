"""What the contestants of the benchmarks share: rows, the terms that all get alike, clocks, and the small interface."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from context_summarize.tokens.measure import measure

Row = dict[str, Any]
T = TypeVar("T")
_sleep = asyncio.sleep


class DoesNotFit(Exception):
    """The stand-in's window is too small for what it is shown.

    An adapter raises what its framework's own model clients raise then, where there is such an error.
    """


class Clock(Protocol):
    """Where contestants that retry or pause take the time from."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """Stands in for `asyncio.sleep`."""
        ...


class VirtualClock:
    """Seconds that pass without waiting; what a contestant sleeps is added up here."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Seconds since the start."""
        return self.seconds

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """Stands in for `asyncio.sleep`."""
        self.seconds += seconds
        await _sleep(0)
        return result


class LoopClock:
    """The time of the running event loop, for a loop whose own time is virtual."""

    def now(self) -> float:
        """Seconds of the loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """`asyncio.sleep`, also while a contestant has that replaced."""
        return await _sleep(seconds, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What every contestant gets alike."""

    answer: Callable[[str, int | None], Awaitable[str]]
    """The stand-in summariser: from the text that it is shown, and the most tokens that it may write (None: its own
    limit), to its answer. It may wait, raise `DoesNotFit`, or raise whatever a model that is down raises."""
    count: Callable[[str], int]
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
    """Tokens of a row of the recording on average, for a contestant that counts rows only."""
    clock: Clock = field(default_factory=VirtualClock)

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

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """What adapters call: the stand-in's answer.

        Instructions that a contestant sends beside what is shown are input that is paid for, and nothing to summarise:
        a benchmark that counts tokens overrides this.
        """
        del instructions
        return await self.answer(shown, max_output)


class Contestant(Protocol):
    """One context manager in the benchmark."""

    title: str
    settings: str
    """What is set beyond trigger and tail, in one line."""
    packages: tuple[str, ...]
    """Distributions whose versions belong beside its figures."""
    frame: str
    """Text that it puts before every summary; what is left beside it is the summary."""

    def __init__(self, terms: Terms) -> None:
        """Raises ImportError where the peer is not installed."""

    async def add(self, row: Row) -> None:
        """Append one row to the conversation."""

    async def view(self) -> list[Row]:
        """The rows of the next request. What the peer would raise into its host is raised here."""

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        """Rows to the peer's own messages and back; equal to `rows` when nothing is lost."""

    async def restart(self) -> None:
        """The host's process starts anew: new objects, and what the framework itself keeps on disk."""

    async def close(self) -> None:
        """Let go of everything."""


# --- rows ---------------------------------------------------------------------------------------------------------


def text_of(row: Row) -> str:
    """The text of a row, without its calls."""
    content = row["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def calls_of(row: Row) -> list[Row]:
    """The calls of a row."""
    return row.get("tool_calls") or []


def spoken(role: str, text: str, calls: Sequence[tuple[str, str, Any]] = (), meta: Any = None) -> Row:
    """A row as Amplifier's loops store it: calls (id, name, arguments) stand as blocks and in `tool_calls`."""
    row: Row = {"role": role, "content": text}
    if calls:
        said = [{"type": "text", "text": text}] if text else []
        row["content"] = [*said, *({"type": "tool_call", "id": i, "name": n, "input": a} for i, n, a in calls)]
        row["tool_calls"] = [{"id": i, "tool": n, "arguments": a} for i, n, a in calls]
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
