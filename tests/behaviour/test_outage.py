"""A provider that is down for minutes or hours: few calls, nothing lost, and summaries again once it is back."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError

from context_summarize import SummarizingContextManager
from context_summarize.testing import MemoryStore, ScriptedProvider, broken_pairs
from tests.support.effort import LONG
from tests.support.recorder import Clock, Recorder, recording

STEP = 5
"""Seconds between two requests."""
ANSWER = "Goal: customers asked for bookings. State: done."


class Provider(ScriptedProvider):
    """Fails with this error between two times of the clock, each call taking a second."""

    def __init__(self, clock: Clock, start: float, end: float, error: Exception) -> None:
        super().__init__(then=ANSWER, name="main", context_window=20_000, max_output_tokens=2_000)
        self._clock, self._start, self._end, self._error = clock, start, end, error
        self.called_at: list[float] = []

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        self.called_at.append(self._clock.time)
        down = self._start <= self._clock.time < self._end
        self._clock.time += 1
        if down:
            self.requests.append(request)
            raise self._error
        return await super().complete(request, **kwargs)


async def session(minutes: float, error: Exception) -> tuple[Recorder, Provider, list[float], list[int]]:
    """The recorded session over an outage: (events, provider, times of compactions, fallback summaries shown)."""
    clock = Clock()
    start = clock.time + 120
    provider = Provider(clock, start, start + minutes * 60, error)
    recorder = Recorder({"main": provider})
    manager = SummarizingContextManager(recorder, clock=clock, sleep=clock.sleep, keep_recent=6)
    rows = recording()[: 600 if minutes <= 10 else 900]
    times: list[float] = []
    digests: list[int] = []
    for row in rows:
        if row["role"] == "assistant":
            before = recorder.count("context:compaction")
            view = await manager.get_messages_for_request(provider=provider)
            assert broken_pairs(view) == []
            assert await manager.get_token_count() <= 17_000
            if recorder.count("context:compaction") > before:
                times.append(clock.time)
                digests.append(recorder.of("context:post_compact")[-1]["digests"])
            clock.time += STEP
            if not start <= clock.time < start + minutes * 60:
                await manager.observe_response("llm:response", {"provider": "main", "status": "ok", "usage": {}})
        await manager.add_message(row)
    assert await manager.get_messages() == rows
    await manager.close()
    return recorder, provider, times, digests


@pytest.mark.parametrize("minutes", [10, 15] if LONG else [10])
async def test_an_outage_costs_few_calls_and_summaries_are_back_at_the_next_boundary(minutes: float) -> None:
    """Ten minutes: at most 12 calls. However long: the first boundary after it shows no digest any more."""
    _, provider, times, digests = await session(minutes, ProviderUnavailableError("down"))
    start, end = 1_120.0, 1_120.0 + minutes * 60
    during = [at for at in provider.called_at if start <= at < end]
    assert 1 <= len(during) <= 12 * minutes / 10
    shown = list(zip(times, digests, strict=True))
    assert any(count for at, count in shown if start <= at < end), "the outage was never felt"
    after = [count for at, count in shown if at > end]
    assert after, "no boundary after the outage: the session is too short for this test"
    assert after[0] == 0
    assert digests[-1] == 0


async def test_a_lasting_error_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Auth: no retry, one error in the log, one event, until calls succeed again."""
    recorder, _, _, digests = await session(8, AuthenticationError("401 invalid key"))
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "auth" in errors[0].getMessage()
    assert recorder.count("context-summarize:failure") == 1
    assert digests[-1] == 0


async def test_the_breaker_outlives_a_repaired_transcript() -> None:
    """`set_messages` replaces the history, not what is known of the provider."""
    clock = Clock()
    provider = ScriptedProvider(then=ProviderUnavailableError("down"), context_window=20_000, max_output_tokens=2_000)
    manager = SummarizingContextManager(clock=clock, sleep=clock.sleep, keep_recent=6)
    rows = recording()[:400]
    await manager.set_messages(rows)
    await manager.get_messages_for_request(provider=provider)
    calls = provider.calls
    assert 0 < calls <= 8
    await manager.set_messages([*rows[:200], {"role": "user", "content": "repaired"}, *rows[200:]])
    await manager.get_messages_for_request(provider=provider)
    assert provider.calls == calls
    await manager.close()


async def test_nothing_is_stored_that_comes_from_a_fallback_summary() -> None:
    """Rule 10, over an outage that lasts the whole session."""
    clock = Clock()
    provider = ScriptedProvider(then=ProviderUnavailableError("down"), context_window=8_000, max_output_tokens=1_000)
    store = MemoryStore()
    manager = SummarizingContextManager(store=store, clock=clock, sleep=clock.sleep, keep_recent=6)
    for row in recording()[:300]:
        await manager.add_message(row)
        if row["role"] == "assistant":
            await manager.get_messages_for_request(provider=provider)
            clock.time += 1
    shown = (await manager.snapshot(await manager.get_messages_for_request(provider=provider))).nodes
    assert any(node.level for node in shown), "nothing was merged"
    assert all(node.summary is not None and node.summary.fallback for node in shown)
    assert await store.get([node.key for node in shown]) == {}
    await manager.close()


async def test_values_that_users_gave_outlive_a_total_outage() -> None:
    """Of 120 values in user messages at least 60 stand in a view of 6,000 tokens, each beside its own noun."""
    clock = Clock()
    provider = ScriptedProvider(then=ProviderUnavailableError("down"), context_window=8_000, max_output_tokens=1_000)
    manager = SummarizingContextManager(store=MemoryStore(), clock=clock, sleep=clock.sleep)
    things = [(f"{noun} {place}", 1_000 + 37 * at) for at, (noun, place) in enumerate(product(_NOUNS, _PLACES))]
    for thing, value in things:
        noun, place = thing.split()
        said = (
            f"I looked at the {noun} in the {place} again this morning and it needed {value}ms. What should come next?"
        )
        await manager.add_message({"role": "user", "content": said})
        await manager.get_messages_for_request(6_000, provider)
        clock.time += 5
        await manager.add_message(
            {"role": "assistant", "content": "I would compare it with what its makers say. " * 12}
        )
    view = await manager.get_messages_for_request(6_000, provider)
    lines = "\n".join(str(row["content"]) for row in view).split("\n")
    kept = [
        thing for thing, value in things if any(f"{value}ms" in line and thing.split()[0] in line for line in lines)
    ]
    assert len(things) == 120
    assert len(kept) >= 60
    await manager.close()


_NOUNS = [
    *("pump", "valve", "sensor", "engine", "filter", "boiler"),
    *("window", "ladder", "cable", "motor", "switch", "panel"),
]
_PLACES = ["cellar", "attic", "garage", "kitchen", "workshop", "office", "hall", "garden", "yard", "tower"]
