"""What `benchmarks/speed` sees of a loop: spans, blocks, gaps, limits, whole sessions. Nothing here asserts a time."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator

import pytest

from benchmarks.speed import limit
from benchmarks.speed.blocks import Found, Monitor, ObservedLoop, Span, gap
from benchmarks.speed.figures import Figure
from benchmarks.speed.sessions import Session, block_figures


@pytest.fixture
def loop() -> Iterator[ObservedLoop]:
    """A loop that ends what was left in it."""
    made = ObservedLoop()
    yield made
    if left := asyncio.all_tasks(made):
        for task in left:
            task.cancel()
        made.run_until_complete(asyncio.wait(left))
    made.run_until_complete(made.shutdown_default_executor())
    made.close()


def spin(seconds: float) -> None:
    """Use so much CPU of this process."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


# --- blocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wall", "cpu", "collected", "own"),
    [
        (0.030, 0.030, 0.0, 0.030),
        (0.090, 0.030, 0.0, 0.030),  # the machine was busy with others
        (0.030, 0.055, 0.0, 0.030),  # a thread ran on another core
        (0.030, 0.030, 0.020, 0.010),
        (0.010, 0.010, 0.011, 0.0),
    ],
)
def test_a_span_counts_neither_others_work_nor_collections(
    wall: float, cpu: float, collected: float, own: float
) -> None:
    assert Span(wall, cpu, collected).own == pytest.approx(own)


@pytest.mark.parametrize(
    ("late", "busy", "cpu", "collected", "lost"),
    [
        (0.200, 0.0, 0.200, 0.0, 0.200),  # a thread held the interpreter
        (0.200, 0.190, 0.200, 0.0, 0.010),  # callbacks ran meanwhile
        (0.200, 0.0, 0.001, 0.0, 0.001),  # the machine was busy with others
        (0.200, 0.0, 0.200, 0.150, 0.050),
        (0.001, 0.004, 0.004, 0.0, 0.0),
    ],
)
def test_a_gap_is_what_callbacks_and_collections_leave(
    late: float, busy: float, cpu: float, collected: float, lost: float
) -> None:
    assert gap(late, busy, cpu, collected) == pytest.approx(lost)


def test_the_largest_block_of_each_call_is_kept_and_named_once() -> None:
    found, asked = Found(), []

    def name(text: str) -> str:
        asked.append(text)
        return text

    for seconds, label, text in (
        (0.01, "request", "a"),
        (0.03, "add", "b"),
        (0.02, "request", "c"),
        (0.01, "add", "d"),
    ):
        found.saw(Span(seconds, seconds), label, lambda text=text: name(text), 0.015)
    assert (found.largest.what, found.callbacks, found.over) == ("b", 4, 2)
    assert {label: block.what for label, block in found.by_call.items()} == {"request": "c", "add": "b"}
    assert asked == ["a", "b", "c"]


def test_block_figures_name_the_call_and_others_above_the_bar() -> None:
    found = Found()
    found.saw(Span(0.080, 0.080), "request", lambda: "request: task plan", 0.025)
    found.saw(Span(0.040, 0.040), "add", lambda: "add: task count", 0.025)
    found.saw(Span(0.001, 0.001), "idle", lambda: "idle: beat", 0.025)
    found.saw_gap(0.030, lambda: "add: counting")
    block, lost = block_figures("40k", found, 25)
    assert (block.value, block.verdict) == (pytest.approx(80), "OVER")
    assert "request: task plan" in block.note
    assert "2 of 3 callbacks above 25 ms" in block.note
    assert "also 40 ms, add: task count" in block.note
    assert "idle" not in block.note
    assert (lost.value, lost.note) == (pytest.approx(30), "add: counting")


def test_a_monitor_names_the_task_that_blocks(loop: ObservedLoop) -> None:
    monitor = Monitor(loop, bar_ms=25)

    async def guilty() -> None:
        spin(0.03)

    async def main() -> None:
        monitor.label = "request"
        await asyncio.create_task(guilty(), name="the-guilty-one")

    with monitor.watching():
        loop.run_until_complete(main())
    assert "request: task the-guilty-one" in monitor.found.largest.what
    assert "guilty" in monitor.found.by_call["request"].what
    assert monitor.found.over == 1


def test_a_monitor_leaves_no_trace(loop: ObservedLoop) -> None:
    run, callbacks = asyncio.Handle._run, list(gc.callbacks)
    with Monitor(loop, bar_ms=25).watching():
        assert asyncio.Handle._run is not run
    assert asyncio.Handle._run is run
    assert gc.callbacks == callbacks


def test_collections_within_a_callback_are_taken_off(loop: ObservedLoop) -> None:
    monitor = Monitor(loop, bar_ms=25)

    async def main() -> None:
        gc.collect()

    with monitor.watching():
        ended = monitor.span()
        loop.run_until_complete(main())
        span = ended()
    assert 0 < monitor.found.collected <= monitor.collected
    assert 0 < span.collected <= monitor.collected


def test_a_loop_names_what_its_threads_run(loop: ObservedLoop) -> None:

    async def main() -> str:
        started = time.perf_counter()
        await asyncio.to_thread(spin, 0.0)
        return loop.threads_since(started)

    assert loop.run_until_complete(main()).endswith("test_speed_blocks.spin")
    assert loop.threads_since(time.perf_counter() + 1) == "no thread of the loop's executor"


# --- parts ----------------------------------------------------------------------------------------------------------


def test_a_limit_ends_a_call_that_never_awaits_and_what_was_found_counts(loop: ObservedLoop) -> None:
    class Endless:
        title = "endless"
        seen = 0

        async def run(self, loop: ObservedLoop, profiles: object) -> None:
            async def other() -> None:
                self.seen = 7
                spin(60)

            await asyncio.gather(asyncio.create_task(other()))

        def figures(self) -> list[Figure]:
            return [Figure("seen", self.seen)]

    seen, cut = limit.run_limited(Endless(), 0.05, loop)
    assert seen.value == 7
    assert cut.what == "endless: cut, s"


def test_a_session_shows_every_bar(loop: ObservedLoop) -> None:
    session = Session(8_000, "above", fills=1)
    figures = limit.run_limited(session, 60, loop)
    assert [figure.what.partition(": ")[2] for figure in figures] == [
        "history, % of 3 windows",
        "request p50, ms",
        "request p50 above threshold, ms",
        "request p99, ms",
        "request max, ms",
        "largest block, ms",
        "largest gap by threads, ms",
        "add_message p50, ms",
    ]
    assert len(session.request_ms) == len(session.view_rows) > 10
    assert session.fed == len(session.add_ms)
    assert session.late_requests > 0
    assert len(session.above_ms) == len(session.above_rows) <= len(session.request_ms)
