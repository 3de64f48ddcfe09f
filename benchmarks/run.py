"""The harness: plays a session to a contestant with a summariser on a clock, and measures every request.

Before each assistant row it makes a request, as an agent's loop does; then it adds the row. Between the two, as much
time passes as the session's own model would take for its answer.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from statistics import fmean

from benchmarks.clock import LoopClock, run_virtually
from benchmarks.peers import Contestant, Terms
from benchmarks.sessions import Session
from benchmarks.summarisers import MAX_OUTPUT, Call, Keeping, Summariser, seconds_of
from benchmarks.tokens import Counting, Row, broken_pairs, count, measure, text_of

Look = Callable[[int, Sequence[Row]], None]
"""Gets each request: the number of rows before it, and its view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of the session."""

    fed: int
    """Rows before it."""
    tokens: int = 0
    """Of its view."""
    cached: int = 0
    """Tokens with which the view begins as the one before did: what a provider's prompt cache holds."""
    waited: float = 0.0
    """Seconds until the contestant returned the view, on the harness's clock."""
    latency: float = 0.0
    """Seconds that the session's own model takes for its answer."""
    cpu: float = 0.0
    """CPU seconds for the rows since the request before, for the request, and for work while the model answers."""
    cpu_counting: float = 0.0
    """CPU seconds of these that the contestant spent in the counter of the harness."""
    broken: int = 0
    """Calls without their result, and results without their call."""
    lost: str = ""
    """The error that reached the host, if one did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The requests and calls of one contestant in one session."""

    contestant: str
    session: str
    budget: int
    tokens: int
    """Of the session."""
    requests: tuple[Request, ...]
    calls: tuple[Call, ...]
    """Of the summariser."""
    view: tuple[Row, ...]
    """Of the last request."""
    versions: dict[str, str]
    seconds: float
    """Of real time."""


class _Play:
    """One session that is being played."""

    def __init__(self, made: type[Contestant], session: Session, summariser: Summariser, *, cached: bool) -> None:
        self._session, self._summariser = session, summariser
        self._count = functools.lru_cache(maxsize=200_000)(count)
        self._sizes = [measure(row, self._count) for row in session.rows]
        self._counting = Counting(cached=cached)
        self._clock = LoopClock()
        spoken = [row for row in session.rows if row["role"] != "system"]
        self._terms = Terms(
            summariser=summariser,
            count=self._counting,
            budget=session.budget,
            system="\n\n".join(text_of(row) for row in session.rows if row["role"] == "system"),
            mean_row=fmean(measure(row, self._count) for row in spoken),
            clock=self._clock,
        )
        self._made = made
        self._contestant = made(self._terms)
        started = time.process_time()
        converted = self._contestant.convert(session.rows)
        # The adapter converted there and back; a view is only brought back.
        self._conversion = (time.process_time() - started) / 2 / max(1, len(converted))
        """CPU seconds that the adapter takes to bring one row back."""
        if converted not in (list(session.rows), spoken):
            raise ValueError(f"the adapter of {made.__name__} does not convert the rows of {session.name} without loss")
        self._spent = 0.0
        """CPU seconds of the contestant since the request before."""
        self._view: Sequence[Row] = ()
        self._view_sizes: list[int] = []
        self._requests: list[Request] = []

    async def run(self, look: Look | None) -> Result:
        started = time.monotonic()
        try:
            for fed, row in enumerate(self._session.rows):
                if row["role"] == "assistant":
                    await self._request(fed, look)
                with self._measured():
                    await self._contestant.add(dict(row))
            await self._request(len(self._session.rows), look)
        finally:
            await self._contestant.close()
        return Result(
            contestant=self._made.__name__,
            session=self._session.name,
            budget=self._session.budget,
            tokens=sum(self._sizes),
            requests=tuple(self._requests),
            calls=tuple(self._summariser.calls),
            view=tuple(self._view),
            versions={name: metadata.version(name) for name in self._made.packages},
            seconds=time.monotonic() - started,
        )

    @contextmanager
    def _measured(self) -> Iterator[None]:
        """Adds the CPU seconds of a block, without those of the stand-in."""
        started = time.process_time() - self._summariser.cpu
        try:
            yield
        finally:
            self._spent += time.process_time() - self._summariser.cpu - started

    async def _request(self, fed: int, look: Look | None) -> None:
        began, counted = self._clock.now(), self._counting.cpu
        try:
            with self._measured():
                view = await self._contestant.view()
        except Exception as error:  # noqa: BLE001 (any error that reaches the host counts)
            waited = self._clock.now() - began
            self._requests.append(Request(fed=fed, waited=waited, lost=f"{type(error).__name__}: {error}"[:200]))
            return
        waited = self._clock.now() - began
        if look is not None:
            look(fed, view)
        tokens, cached = self._compared(view)
        latency = seconds_of(tokens, self._sizes[fed] if fed < len(self._sizes) else 0)
        with self._measured():
            await self._clock.sleep(latency)
        cpu, self._spent = self._spent - self._conversion * len(view), 0.0
        self._requests.append(
            Request(
                fed=fed,
                tokens=tokens,
                cached=cached,
                waited=waited,
                latency=latency,
                cpu=max(0.0, cpu),
                cpu_counting=self._counting.cpu - counted,
                broken=broken_pairs(view),
            )
        )

    def _compared(self, view: Sequence[Row]) -> tuple[int, int]:
        """Returns a view's tokens, and how many of them a cache of the view before holds."""
        same = 0
        for old, new in zip(self._view, view, strict=False):
            if any(old.get(key) != new.get(key) for key in ("role", "content", "tool_calls")):
                break
            same += 1
        cached = sum(self._view_sizes[:same])
        if same < min(len(self._view), len(view)) and self._view[same]["role"] == view[same]["role"]:
            cached += self._count(os.path.commonprefix([text_of(self._view[same]), text_of(view[same])]))  # noqa: RUF071 (no paths)
        self._view_sizes = self._view_sizes[:same] + [measure(row, self._count) for row in view[same:]]
        self._view = list(view)
        return sum(self._view_sizes), cached


def play(
    contestant: type[Contestant],
    session: Session,
    summariser: Callable[..., Summariser] = Keeping,
    *,
    look: Look | None = None,
    cached: bool = True,
) -> Result:
    """Plays a session to a contestant, in virtual time: a contestant's own work takes none.

    Args:
        look: gets every request.
        cached: gives the contestant's counter a cache; without one, its CPU seconds hold all of its counting.

    Raises:
        ImportError: the contestant is not installed.
        ValueError: its adapter loses something of the session.
    """

    async def main() -> Result:
        counted = functools.lru_cache(maxsize=200_000)(count)
        answers = summariser(counted, session.budget + MAX_OUTPUT)
        under_way = _Play(contestant, session, answers, cached=cached)
        return await under_way.run(look)

    return run_virtually(main())
