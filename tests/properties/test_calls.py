"""How many calls a session makes that bring no summary, whatever its provider does; in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from amplifier_core import llm_errors as errors
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from context_summarize.testing import ScriptedProvider
from tests.support.effort import full
from tests.support.managed import Managed
from tests.support.recorder import Clock
from tests.support.rows import tool_session
from tests.support.virtual import run_virtually

WINDOW = 300
"""Requests in which the calls are bounded."""
REQUESTS = 330
SETTINGS: dict[str, Any] = {"keep_recent": 4, "segment_tokens": 256, "wait_seconds": 5}
GOOD = "Goal: orders were looked up. State: found."
HANGS, DEAF = object(), object()
"""It never answers; it ignores that it is cancelled, too."""


class Unreadable(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


FAULTS: list[Any] = [
    errors.ProviderUnavailableError("503"),
    ConnectionResetError("reset"),
    errors.RateLimitError("slow"),
    errors.RateLimitError("slow", retry_after=float("nan")),
    errors.AuthenticationError("401"),
    errors.InvalidRequestError("bad schema"),
    errors.InvalidRequestError("max_tokens is too large: 8400. This model supports at most 4096 completion tokens"),
    errors.ContextLengthError("too many tokens"),
    ValueError("no JSON"),
    Unreadable(),
    asyncio.CancelledError(),
    SystemExit(1),
    BaseExceptionGroup("both", [SystemExit(1)]),
    None,
    "",
    SimpleNamespace(content=[{"type": "thinking", "thinking": "hm"}], tool_calls=[1]),
    "I'm sorry, I can't.",
    "bad \ud800 text about orders",
    "## Summary 7 of 6\nmore",
    "x" * 2_000_000,
    SimpleNamespace(content="It was looked up. " * 60, finish_reason="length"),
    SimpleNamespace(content="Goal", finish_reason="length"),
    SimpleNamespace(content=GOOD, usage=SimpleNamespace(cost_usd="much", input_tokens="many", output_tokens=-5)),
    HANGS,
    DEAF,
    GOOD,
]


class Hostile(ScriptedProvider):
    """Behaves in these ways, one after the other, again and again.

    An error is raised, everything else returned.
    """

    def __init__(self, ways: Sequence[Any]) -> None:
        super().__init__(context_window=6_000, max_output_tokens=500)
        self._ways = ways
        self.released = asyncio.Event()
        self.deaf = 0

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        way = self._ways[self.calls % len(self._ways)]
        self.requests.append(request)
        assert (request.max_output_tokens or 0) <= self.max_output_tokens
        if isinstance(way, BaseException):
            raise way
        if way is HANGS:
            await self.released.wait()
        while way is DEAF and not self.released.is_set():
            self.deaf += 1
            with contextlib.suppress(asyncio.CancelledError):
                await self.released.wait()
        found = GOOD if way in (HANGS, DEAF) else way
        return SimpleNamespace(content=found) if isinstance(found, str) else found


async def session(provider: Hostile, step: float) -> list[tuple[int, int]]:
    """(calls, summaries) before the first request and after each; `step` seconds lie between them."""
    clock = Clock()
    made = Managed(2_500, provider=lambda: provider, clock=clock, sleep=clock.sleep, **SETTINGS)
    told = [(0, 0)]
    for turn in range(REQUESTS // 2):
        for row in tool_session(1, size=260, start=turn):
            if row["role"] == "assistant":
                await made.view()
                told.append((provider.calls, len(made.store.summaries)))
                clock.time += step
            await made.add([row])
    provider.released.set()
    assert len(str(await made.manager.statistics())) < 10_000
    await made.manager.close()
    return told


@given(ways=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=6), step=st.sampled_from([0.0, 1.0, 90.0]))
@example(ways=[*[""] * 9, GOOD], step=90.0)
@example(ways=[HANGS, DEAF], step=90.0)
@settings(max_examples=full(10, 1), suppress_health_check=[HealthCheck.too_slow])
def test_calls_without_a_summary_are_bounded_whatever_a_provider_does(ways, step):
    """In every 300 requests that follow one another they are at most 100, and 8 a summary."""

    async def run() -> None:
        provider = Hostile(ways)
        told = await session(provider, step)
        assert len(told) == REQUESTS + 1
        for (calls, summaries), (later_calls, later_summaries) in zip(told, told[WINDOW:], strict=False):
            made = later_summaries - summaries
            assert later_calls - calls - made <= 100 + 8 * made
        assert provider.deaf <= 8 * 3

    run_virtually(run())
