"""Large rows and long histories: blocks of the event loop, seconds until the first request, and calls made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from benchmarks.speed.blocks import Found, Monitor, ObservedLoop
from benchmarks.speed.figures import LARGE_BLOCK_MS, LARGE_CALLS, Figure
from benchmarks.speed.imports import WINDOW, timed
from benchmarks.speed.profiles import Profiles
from benchmarks.speed.provider import RequestClock, make_provider
from benchmarks.speed.rows import RECORDING, Row, rows, tokens_per_row
from benchmarks.speed.sessions import block_figures
from context_summarize import SummarizingContextManager
from context_summarize.recall.query import RecallQuery
from context_summarize.testing import call, result, tool_session, user

_TURNS = 12
"""Turns after a large row, so that it is old enough to be summarised."""
_CALLS = 10_000
KINDS = ("user", "result", "line", "arguments", "set", "calls", "rows")
_SHAPES = {"text": "as a text of JSON", "dict": "as a dict", "block": "in a block"}
"""How a call holds its arguments."""
_MEGABYTE = 2**20
_SMALL = 5
"""Megabytes that take a few seconds."""


@dataclass(slots=True)
class Large:
    """One large input, the first request after it, and one more once it is old."""

    kind: str
    """What is large: `user`, `result`, `line` (a result without a line end), `arguments`, `set`, `calls` or `rows`."""
    size: int = 0
    """Megabytes; of `rows`: rows."""
    samples: bool = False
    shape: str = "text"
    """Of `arguments`: one of `_SHAPES`."""
    adding: float = 0.0
    asking: float = 0.0
    later: float = 0.0
    recalling: float = 0.0
    calls: int = 0
    found: Found = field(default_factory=Found)

    @property
    def title(self) -> str:
        """What, and how large."""
        names = {
            "user": f"{self.size} MB in a user row",
            "result": f"{self.size} MB in a tool result",
            "line": f"{self.size} MB in one line of a tool result",
            "arguments": f"{self.size} MB in arguments {_SHAPES[self.shape]}",
            "set": f"{self.size} MB by set_messages",
            "calls": f"{self.size:,} parallel calls",
            "rows": f"{self.size:,} rows by set_messages",
        }
        return names[self.kind]

    @property
    def share(self) -> float:
        """Of the usual time limit, what it may take."""
        if self.size == _SMALL:
            return 0.18
        return {"rows": 1.5, "set": 0.75, "arguments": 0.3}.get(self.kind, 0.38)

    async def run(self, loop: ObservedLoop, profiles: Profiles | None) -> None:
        """Add it, ask for a request, add some turns, ask again, and recall from the history."""
        await tokens_per_row(200)
        provider = make_provider(WINDOW, RequestClock(), 0)
        manager = SummarizingContextManager()
        first, adding = self._input(manager)
        if first:
            await manager.set_messages(first)
            await manager.get_messages_for_request(provider=provider)
        monitor = Monitor(loop, bar_ms=LARGE_BLOCK_MS, samples=self.samples)
        self.found = monitor.found
        before = (await manager.statistics()).calls
        if profiles is not None:
            loop.wrap = profiles.in_thread
            profiles.start()
        with monitor.watching():
            self.adding = (await timed(monitor, "adding", adding())).own
            ask = manager.get_messages_for_request
            self.asking = (await timed(monitor, "first request", ask(provider=provider))).own
            await timed(monitor, "prefetch", manager.settle())
            await timed(monitor, "turns", _add(manager, [*tool_session(_TURNS, size=250, start=10**6)]))
            self.later = (await timed(monitor, "next request", ask(provider=provider))).own
            await timed(monitor, "prefetch", manager.settle())
            query = RecallQuery(words="refund of a flight")
            self.recalling = (await timed(monitor, "recall", manager.recall(query))).own
        if profiles is not None:
            profiles.stop()
        self.calls = (await manager.statistics()).calls - before
        await manager.close()

    def _input(self, manager: SummarizingContextManager) -> tuple[list[Row], Callable[[], Awaitable[None]]]:
        """Rows of the session before, and what adds the large input."""
        if self.kind == "rows":
            made = rows(self.size)
            return [], lambda: manager.set_messages(made)
        if self.kind == "set":
            made = [*rows(20), *(user(text(_MEGABYTE, at)) for at in range(self.size))]
            return [], lambda: manager.set_messages(made)
        if self.kind == "calls":
            asked = {**call("call_0", "look"), "tool_calls": [_entry(at) for at in range(self.size)]}
            made = [asked, *(result(f"call_{at}", f"Case {at} is open.") for at in range(self.size))]
            return rows(400), lambda: _add(manager, made)
        large = text(self.size * _MEGABYTE)
        if self.kind == "arguments":
            made = [user("Write the log."), _writing(self.shape, large), result("call_write", "Done.")]
            return rows(400), lambda: _add(manager, made)
        if self.kind == "user":
            return rows(400), lambda: manager.add_message(user(large))
        large = large.replace("\n", " ") if self.kind == "line" else large
        before = [*rows(400), user("Show me the log."), call("call_large", "show")]
        return before, lambda: manager.add_message(result("call_large", large))

    def figures(self) -> list[Figure]:
        """Seconds, calls, blocks."""
        most = LARGE_CALLS if self.kind in ("user", "result", "line", "arguments") else None
        return [
            Figure(f"{self.title}: adding, s", self.adding),
            Figure(f"{self.title}: until the first request, s", self.adding + self.asking),
            Figure(f"{self.title}: request once it is old, s", self.later),
            Figure(f"{self.title}: recall, s", self.recalling),
            Figure(f"{self.title}: calls", self.calls, most),
            *block_figures(self.title, self.found, LARGE_BLOCK_MS),
        ]


def cases(quick: bool, samples: bool) -> list[Large]:
    """What is measured; the quick ones are a tenth in size."""
    shapes = tuple(_SHAPES)
    kinds = (("user", 5), ("user", 50), ("result", 5), ("result", 50), ("line", 50), ("set", 20))
    if quick:
        return [
            *(Large(kind, 1, samples) for kind in ("user", "result", "line", "set")),
            *(Large("arguments", 1, samples, shape) for shape in shapes),
            Large("calls", 1_000, samples),
        ]
    return [
        *(Large(kind, size, samples) for kind, size in kinds),
        *(Large("arguments", 5, samples, shape) for shape in shapes),
        Large("arguments", 50, samples, "dict"),
        Large("calls", _CALLS, samples),
        Large("rows", 200_000, samples),
    ]


def text(length: int, number: int = 0) -> str:
    """So many characters of the recording, after a line that makes them differ."""
    recorded = RECORDING.read_text("utf-8")
    return f"Log {number}\n{recorded * (1 + length // len(recorded))}"[:length]


def _entry(at: int) -> Row:
    return {"id": f"call_{at}", "type": "function", "function": {"name": "look", "arguments": f'{{"case": {at}}}'}}


def _writing(shape: str, large: str) -> Row:
    """A call that writes a file of this text."""
    name, given = "write_file", {"path": "logs/all.txt", "content": large}
    if shape == "block":
        block = {"type": "tool_call", "id": "call_write", "name": name, "input": given}
        return {"role": "assistant", "content": [{"type": "text", "text": "I write it."}, block]}
    entry = {"id": "call_write", "tool": name, "arguments": given}
    if shape == "text":
        function = {"name": name, "arguments": json.dumps(given)}
        entry = {"id": "call_write", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [entry]}


async def _add(manager: SummarizingContextManager, made: list[Row]) -> None:
    for row in made:
        await manager.add_message(row)
        await asyncio.sleep(0)
