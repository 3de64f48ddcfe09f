"""Blocks of the event loop: how long each callback ran, what ran, and how long threads kept the loop waiting.

Every span is measured by the clock and by the CPU of the process. The smaller of the two counts, less the garbage
collections within: on a machine that others use, the clock alone shows their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

HEARTBEAT = 0.005
"""Seconds between two beats."""
SAMPLE = 0.005
"""Seconds between two looks at a callback that runs long."""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of one stretch of work."""

    wall: float
    cpu: float
    """Of the whole process."""
    collected: float = 0.0
    """Full garbage collections within."""

    @property
    def own(self) -> float:
        """What counts: the smaller of clock and CPU, less garbage collections."""
        return max(0.0, min(self.wall, self.cpu) - self.collected)


def gap(late: float, busy: float, cpu: float, collected: float) -> float:
    """Seconds that a beat came late beyond the callbacks that ran since it was due; what threads took.

    Args:
        late: seconds between the time the beat was due and the time it came.
        busy: seconds of callbacks since the beat was armed.
        cpu: seconds of the process's CPU since then.
        collected: seconds of garbage collections since then, outside callbacks.
    """
    return max(0.0, min(late - busy, cpu - busy) - collected)


@dataclass(frozen=True, slots=True)
class Block:
    """One stretch in which nothing else ran in the loop."""

    seconds: float
    wall: float
    what: str
    """The task or callback, and what the benchmark was doing."""

    def __str__(self) -> str:
        wall = f"; {self.wall * 1000:.0f} ms by the clock" if self.wall > 1.5 * self.seconds + 0.005 else ""
        first, newline, stacks = self.what.partition("\n")
        return f"{first}{wall}{newline}{stacks}"


NONE = Block(0.0, 0.0, "")


@dataclass(slots=True)
class Found:
    """What a monitor has seen so far."""

    largest: Block = NONE
    """Of callbacks."""
    gap: Block = NONE
    """Of threads that kept the loop from running."""
    over: int = 0
    """Callbacks above the bar."""
    callbacks: int = 0
    by_call: dict[str, Block] = field(default_factory=dict)
    """The largest block of each label."""
    collected: float = 0.0
    """Seconds of the longest garbage collection."""

    def saw(self, span: Span, label: str, what: Callable[[], str], bar: float) -> None:
        """Account one callback; `what` is asked only where it is the largest."""
        own = span.own
        self.callbacks += 1
        self.over += own > bar
        if own > self.by_call.get(label, NONE).seconds:
            self.by_call[label] = block = Block(own, span.wall, what())
            if own > self.largest.seconds:
                self.largest = block

    def saw_gap(self, seconds: float, what: Callable[[], str]) -> None:
        """Account one gap between callbacks."""
        if seconds > self.gap.seconds:
            self.gap = Block(seconds, seconds, what())


class ObservedLoop(asyncio.SelectorEventLoop):
    """A loop that notes what its threads run, and for how long; `asyncio.to_thread` goes through here."""

    def __init__(self) -> None:
        super().__init__()
        self.thread_calls: deque[tuple[str, float, float]] = deque(maxlen=64)
        """Name, start and end (clock) of the last calls in threads."""
        self.in_threads: dict[int, tuple[str, float]] = {}
        self.wrap: Callable[[Callable[[], Any]], Any] = lambda call: call()
        """Runs a call of a thread; a profiler stands here."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """As the loop's own."""
        call = functools.partial(func, *args)

        def observed() -> Any:
            started, me = time.perf_counter(), threading.get_ident()
            self.in_threads[me] = (_call_name(func, args), started)
            try:
                return self.wrap(call)
            finally:
                name, _ = self.in_threads.pop(me)
                self.thread_calls.append((name, started, time.perf_counter()))

        return super().run_in_executor(executor, observed)

    def threads_since(self, moment: float) -> str:
        """Names of the thread calls that ran after this moment."""
        ended = [name for name, _, end in self.thread_calls if end >= moment]
        running = [name for name, _ in list(self.in_threads.values())]
        return ", ".join(dict.fromkeys([*ended, *running])) or "no thread of the loop's executor"


def _call_name(func: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """The function that a thread runs; `asyncio.to_thread` hides it behind `Context.run`."""
    for inner in (func, *args):
        while isinstance(inner, functools.partial):
            if inner.args and callable(inner.args[0]):
                inner = inner.args[0]
            else:
                inner = inner.func
        name = getattr(inner, "__qualname__", None)
        if name and name != "Context.run" and callable(inner):
            return f"{str(getattr(inner, '__module__', '')).removeprefix('context_summarize.')}.{name}"
    return repr(func)


class Monitor:
    """Times every callback of one loop while it is entered; `label` says what the benchmark is doing."""

    def __init__(self, loop: ObservedLoop, *, bar_ms: float, samples: bool = False) -> None:
        self.found = Found()
        self.label = "setup"
        self.collected = 0.0
        """Seconds of full garbage collections so far."""
        self._loop = loop
        self._bar = bar_ms / 1000
        self._samples = samples
        self._busy = 0.0
        self._collected_outside = 0.0
        self._running: float | None = None
        self._collecting: tuple[float, float] | None = None
        self._stacks: Counter[str] = Counter()
        self._beat: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[Monitor]:
        """Time the loop's callbacks within."""
        original = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            if handle._loop is not self._loop:  # type: ignore[attr-defined]
                original(handle)
                return
            self._timed(handle, original)

        stop = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(threading.get_ident(), stop), daemon=True)
        gc.callbacks.append(self._on_collection)
        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
        if self._samples:
            sampler.start()
        self._arm()
        try:
            yield self
        finally:
            if self._beat is not None:
                self._beat.cancel()
            stop.set()
            asyncio.Handle._run = original  # type: ignore[method-assign]
            gc.callbacks.remove(self._on_collection)

    def span(self) -> Callable[[], Span]:
        """Start a span; the function that comes back ends it."""
        # The CPU is asked outside of the clock's span: kernels like to switch processes when a system call returns.
        collected, cpu, wall = self.collected, time.process_time(), time.perf_counter()
        return lambda: Span(time.perf_counter() - wall, time.process_time() - cpu, self.collected - collected)

    def _timed(self, handle: asyncio.Handle, run: Callable[[asyncio.Handle], None]) -> None:
        callback = handle._callback  # type: ignore[attr-defined]  # a handle forgets it when it is cancelled
        self._stacks.clear()
        label, mine, ended = self.label, time.thread_time(), self.span()
        self._running = started = time.perf_counter()
        try:
            run(handle)
        finally:
            self._running = None
            span = ended()
            self._busy += span.wall
            others = span.own + span.collected - (time.thread_time() - mine)

            def what() -> str:
                waited = f"; {others * 1000:.0f} ms of it in {self._loop.threads_since(started)}"
                return f"{label}: {_name(callback)}{waited if others > span.own / 4 else ''}{self._where()}"

            self.found.saw(span, label, what, self._bar)

    def _where(self) -> str:
        total = sum(self._stacks.values())
        return "".join(f"\n  {count}/{total} {stack}" for stack, count in self._stacks.most_common(3))

    def _arm(self) -> None:
        due = time.perf_counter() + HEARTBEAT
        state = self._busy, time.process_time(), self._collected_outside
        self._beat = self._loop.call_later(HEARTBEAT, self._on_beat, due, *state)

    def _on_beat(self, due: float, busy: float, cpu: float, collected: float) -> None:
        now = time.perf_counter()
        outside = self._collected_outside - collected
        lost = gap(now - due, self._busy - busy, time.process_time() - cpu, outside)
        self.found.saw_gap(lost, lambda: f"{self.label}: {self._loop.threads_since(due - HEARTBEAT)}")
        self._arm()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return  # below a millisecond, and more often than clocks are cheap
        now = time.perf_counter(), time.process_time()
        if phase == "start":
            self._collecting = now
        elif self._collecting is not None:
            taken = min(now[0] - self._collecting[0], now[1] - self._collecting[1])
            self._collecting = None
            self.collected += taken
            if self._running is None:
                self._collected_outside += taken
            self.found.collected = max(self.found.collected, taken)

    def _sample(self, thread: int, stop: threading.Event) -> None:
        while not stop.wait(SAMPLE):
            running = self._running
            if running is not None and time.perf_counter() - running > 2 * SAMPLE:
                frame = sys._current_frames().get(thread)
                self._stacks[_stack(frame)] += 1


def _stack(frame: FrameType | None) -> str:
    """The innermost four functions of the package in a stack, outermost first."""
    found: list[str] = []
    while frame is not None and len(found) < 4:
        code = frame.f_code
        if "context_summarize" in code.co_filename:
            found.append(f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})")
        frame = frame.f_back
    return " > ".join(reversed(found)) or "outside the package"


def _name(callback: Any) -> str:
    """A task's name, its coroutine and where it has stopped; else the callback's own name."""
    owner = getattr(callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        while isinstance(callback, functools.partial):
            callback = callback.func
        return str(getattr(callback, "__qualname__", None) or repr(callback))
    coroutine: Any = owner.get_coro()
    name = "" if owner.get_name().startswith("Task-") else f"{owner.get_name()} "
    chain = [getattr(coroutine, "__qualname__", "?")]
    stopped = ""
    while getattr(coroutine, "cr_frame", None) is not None:
        code = coroutine.cr_frame.f_code
        if "context_summarize" in code.co_filename:
            stopped = f" until {code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{coroutine.cr_frame.f_lineno})"
        coroutine = coroutine.cr_await
    return f"task {name}{chain[0]}{stopped}"
