"""How many calls a session makes that bring no summary, whatever its provider does."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.llm_errors import InvalidRequestError, RateLimitError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.unreliable import GOOD, LASTING, SLOW, UNASKED, Hostile, Stored, cut, used, used_calls
from context_summarize import SummarizingContextManager
from context_summarize.testing import tool_session
from tests.support.recorder import Clock, Recorder

EXAMPLES = max(6, int(os.environ.get("CONTEXT_SUMMARIZE_EXAMPLES", "300")) // 50)
WINDOW = 300
"""Requests in which the calls are bounded."""
REQUESTS = 360

OWN: list[Any] = [
    RateLimitError("slow", retry_after=0),
    InvalidRequestError("max_tokens is too large: 8400. This model supports at most 4096 completion tokens"),
    BaseExceptionGroup("both", [SystemExit(1)]),
    "## Summary 7 of 6\nmore",
    cut(""),
    used(cost_usd="1e-999999", output_tokens=-5, reasoning_tokens="many"),
    SimpleNamespace(content=[{"type": "thinking", "thinking": "hm"}], tool_calls=[1]),
]
"""Behaviours that the faults of `benchmarks/unreliable.py` do not have."""


async def session(provider: Hostile, step: float) -> Stored:
    """360 requests, `step` seconds between them."""
    clock, store = Clock(), Stored(provider)
    # 50 ms are long enough for an answer that comes at once, and short enough for many hangs.
    config: dict[str, Any] = {
        "keep_recent": 4,
        "segment_tokens": 256,
        "summary_tokens": 64,
        "request_timeout": 0.05,
        "wait_seconds": 5,
    }
    manager = SummarizingContextManager(Recorder(), config=config, store=store, clock=clock, sleep=clock.sleep)
    for row in tool_session(REQUESTS // 2, size=300):
        if row["role"] == "assistant":
            await manager.get_messages_for_request(2_500, provider)
            provider.served += 1
            clock.time += step
        await manager.add_message(row)
    provider.released.set()
    statistics = await manager.statistics()
    assert len(str(statistics)) < 10_000
    await manager.close()
    return store


def check(provider: Hostile, store: Stored) -> None:
    """In every 300 requests that follow one another, calls that bring nothing are at most 60, and 2 a summary."""
    used = used_calls(provider, store)
    wasted = [at for call, at in enumerate(provider.made) if call not in used]
    assert provider.served == REQUESTS
    for start in range(REQUESTS - WINDOW + 1):
        window = range(start, start + WINDOW)
        summaries = sum(at in window for at, _ in store.came)
        calls = sum(at in window for at in wasted)
        assert calls <= 60 + 2 * summaries, (start, calls, summaries)


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that ignore their cancellation are not waited for here."""
    monkeypatch.setattr("context_summarize.summaries.calls.GRACE", 0.001)


# The two that are left out wait in real time here.
SHARED = [way for fault in LASTING for way in fault.ways if way not in (SLOW, UNASKED)]
WAYS = st.sampled_from([*SHARED, *OWN, GOOD])


@given(ways=st.lists(WAYS, min_size=1, max_size=6), step=st.sampled_from([0.0, 1.0, 90.0]))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize="CI" in os.environ,
)
def test_calls_without_a_summary_are_bounded_whatever_a_provider_does(ways: list[Any], step: float) -> None:
    """At most 60 in any 300 requests, and two for each summary stored in them."""

    async def run() -> None:
        provider = Hostile(ways)
        check(provider, await session(provider, step))
        assert provider.deaf <= 8 * 3

    asyncio.run(run())
