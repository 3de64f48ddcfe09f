"""How many calls a session makes that bring no summary, whatever its provider does; in virtual time."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.testing import assistant, call, result, user
from tests.support.effort import full
from tests.support.hostile import DEAF, FAULTS, GOOD, HANGS, Hostile, Stored
from tests.support.recorder import Clock, Recorder
from tests.support.virtual import run_virtually

WINDOW = 300
"""Requests in which the calls are bounded."""
REQUESTS = 360
SETTINGS: dict[str, Any] = {
    "keep_recent": 4, "segment_tokens": 256, "wait_seconds": 5,
}  # fmt: skip


async def session(provider: Hostile, step: float) -> Stored:
    """360 requests, `step` seconds between them."""
    clock, store = Clock(), Stored(provider)
    manager = SummarizingContextManager(Recorder(), config=SETTINGS, store=store, clock=clock, sleep=clock.sleep)
    for turn in range(REQUESTS // 2):
        asked, looked = user(f"Please look up what came as number {turn}."), call(f"c{turn}", "lookup")
        found = result(f"c{turn}", "It was looked up, and there was more of it. " * 6, "lookup")
        for row in (asked, looked, found, assistant("It is on its way.")):
            if row["role"] == "assistant":
                await manager.get_messages_for_request(2_500, provider)
                provider.served += 1
                clock.time += step
            await manager.add_message(row)
    provider.released.set()
    assert len(str(await manager.statistics())) < 10_000
    await manager.close()
    return store


def check(provider: Hostile, store: Stored) -> None:
    """In every 300 requests that follow one another, calls that bring nothing are at most 60, and 2 a summary."""
    used = store.used_calls()
    wasted = [at for call, at in enumerate(provider.made) if call not in used]
    assert provider.served == REQUESTS
    for start in range(REQUESTS - WINDOW + 1):
        window = range(start, start + WINDOW)
        summaries = sum(at in window for at, _ in store.came)
        calls = sum(at in window for at in wasted)
        assert calls <= 60 + 2 * summaries, (start, calls, summaries)


@given(ways=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=6), step=st.sampled_from([0.0, 1.0, 90.0]))
@example(ways=["", GOOD], step=1.0)
@example(ways=[HANGS, DEAF], step=90.0)
@settings(max_examples=full(20, 2), suppress_health_check=[HealthCheck.too_slow])
def test_calls_without_a_summary_are_bounded_whatever_a_provider_does(ways: list[Any], step: float) -> None:
    """At most 60 in any 300 requests, and two for each summary stored in them."""

    async def run() -> None:
        provider = Hostile(ways)
        check(provider, await session(provider, step))
        assert provider.deaf <= 8 * 3

    run_virtually(run())
