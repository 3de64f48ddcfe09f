"""The arithmetic of `benchmarks/speed`: percentiles, bars, blocks, gaps, limits. Nothing here asserts a time."""

from __future__ import annotations

import asyncio
import math

import pytest
from amplifier_core.message_models import ChatRequest, Message

from benchmarks.speed import __main__ as command
from benchmarks.speed import imports
from benchmarks.speed.figures import Figure, percentile, request_p50_bar, request_p99_bar, shown
from benchmarks.speed.provider import RequestClock, make_provider, pace, summary
from benchmarks.speed.rows import rows
from context_summarize.testing import user

# --- figures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.01, 1), (0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100)])
def test_a_percentile_is_the_nearest_rank(share: float, value: int) -> None:
    assert percentile(reversed(range(1, 101)), share) == value


def test_one_value_is_every_percentile_and_none_is_no_number() -> None:
    assert percentile([7.0], 0.01) == percentile([7.0], 0.99) == 7.0
    assert math.isnan(percentile([], 0.5))


def test_bars_grow_with_the_view_and_the_window() -> None:
    assert request_p50_bar(0) == pytest.approx(0.2)
    assert request_p50_bar(10_000) == pytest.approx(6.2)
    bars = [request_p99_bar(window) for window in (4_000, 40_000, 60_000, 200_000, 1_000_000, 2_000_000)]
    assert bars == [5, 5, 10, 10, 25, 25]


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("a", 1.0), ""),
        (Figure("a", 1.0, most=1.0), "ok"),
        (Figure("a", 1.01, most=1.0), "OVER"),
        (Figure("a", 99, least=99), "ok"),
        (Figure("a", 98, least=99), "SHORT"),
        (Figure("a", math.nan, most=1.0), "OVER"),
        (Figure("a", math.nan), ""),
    ],
)
def test_a_figure_tells_whether_its_bar_is_kept(figure: Figure, verdict: str) -> None:
    assert figure.verdict == verdict
    assert figure.is_over is (verdict in ("OVER", "SHORT"))


def test_figures_are_shown_with_three_digits() -> None:
    assert [shown(value) for value in (0.04567, 1.5, 12.345, 123.4, 100_000, math.nan)] == [
        *("0.0457", "1.5", "12.3", "123", "100,000", "-"),
    ]


# --- what is fed ----------------------------------------------------------------------------------------------------


def test_rows_have_one_system_prompt_and_call_ids_of_their_own() -> None:
    made = rows(3_600)
    assert len(made) == 3_600
    assert sum(row["role"] == "system" for row in made) == 1
    answered = [row["tool_call_id"] for row in made if row["role"] == "tool"]
    assert len(answered) == len(set(answered)) > 500


async def test_an_answer_comes_so_many_requests_later() -> None:
    clock = RequestClock()
    waiting = [asyncio.create_task(clock.after(2))]
    await asyncio.sleep(0)
    clock.tick()
    waiting.append(asyncio.create_task(clock.after(2)))
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [False, False]
    clock.tick()
    await waiting[0]
    assert not waiting[1].done()
    clock.tick()
    await waiting[1]
    await clock.after(0)


def test_a_pace_is_the_share_of_the_window_in_requests() -> None:
    assert pace(200_000, 0.1, 200.0) == 100


async def test_a_provider_answers_with_the_length_asked_for_and_keeps_no_request() -> None:
    provider = make_provider(40_000, RequestClock(), 0)
    asked = [Message(role="system", content="Use at most 400 words."), Message(**user("text"))]
    answer = await provider.complete(ChatRequest(messages=asked))
    words = len(answer.content[0].text.split())
    assert 150 <= words <= 400
    assert summary(1, 400) != summary(2, 400)
    assert provider.requests == []


# --- parts ----------------------------------------------------------------------------------------------------------


def test_sizes_grow_to_the_largest() -> None:
    assert imports.steps(100_000) == [2_000, 8_000, 32_000, 100_000]
    assert imports.steps(2_000) == imports.steps(2_000, first=4_000) == [2_000]


def test_figures_may_be_asked_before_anything_has_run() -> None:
    for part, _ in command.parts_of(command.options_of([])):
        assert all(isinstance(figure, Figure) for figure in part.figures())


def test_the_command_line_chooses_parts() -> None:
    chosen = command.options_of(["requests", "memory", "--window", "200000", "--variant", "late"])
    assert [part.title for part, _ in command.parts_of(chosen)] == ["200k late", "memory"]
    quick = command.options_of(["--quick"])
    assert (quick.window, quick.rows) == ([40_000, 200_000], 10_000)
    whole = list(command.parts_of(command.options_of([])))
    assert sum(seconds for _, seconds in whole) < 900
    with pytest.raises(SystemExit):
        command.options_of(["nonsense"])
