"""A provider or a store that is down: few calls, nothing lost, and summaries again once the provider is back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError

from context_summarize import SummarizingContextManager
from context_summarize.testing import FALLBACK_LINE, ScriptedProvider, broken_pairs, measure
from tests.support.effort import LONG
from tests.support.gated import Gated
from tests.support.kept import KeptStore
from tests.support.recorder import Clock, Recorder, recording
from tests.support.rows import feed, tool_session
from tests.support.views import nodes, untimed
from tests.support.virtual import run_virtually

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
    fallbacks: list[int] = []
    for row in rows:
        if row["role"] == "assistant":
            before = recorder.count("context:compaction")
            view = await manager.get_messages_for_request(provider=provider)
            assert broken_pairs(view) == []
            assert await manager.get_token_count() <= 17_000
            if recorder.count("context:compaction") > before:
                times.append(clock.time)
                fallbacks.append(recorder.of("context:post_compact")[-1]["fallbacks"])
            clock.time += STEP
            if not start <= clock.time < start + minutes * 60:
                await manager.observe_response("llm:response", {"provider": "main", "status": "ok", "usage": {}})
        await manager.add_message(row)
    assert untimed(await manager.get_messages()) == rows
    await manager.close()
    return recorder, provider, times, fallbacks


@pytest.mark.parametrize("minutes", [10, 15] if LONG else [10])
async def test_an_outage_costs_few_calls_and_summaries_are_back_at_the_next_compaction(minutes: float) -> None:
    """Ten minutes: at most 12 calls. However long: the first compaction after it shows no fallback any more."""
    _, provider, times, fallbacks = await session(minutes, ProviderUnavailableError("down"))
    start, end = 1_120.0, 1_120.0 + minutes * 60
    during = [at for at in provider.called_at if start <= at < end]
    assert 1 <= len(during) <= 12 * minutes / 10
    shown = list(zip(times, fallbacks, strict=True))
    assert any(count for at, count in shown if start <= at < end), "the outage was never felt"
    after = [count for at, count in shown if at > end]
    assert after, "no compaction after the outage: the session is too short for this test"
    assert after[0] == 0
    assert fallbacks[-1] == 0


async def test_a_lasting_error_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Auth: no retry, one error in the log, one event, until calls succeed again."""
    recorder, _, _, fallbacks = await session(8, AuthenticationError("401 invalid key"))
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "auth" in errors[0].getMessage()
    assert recorder.count("context-summarize:failure") == 1
    assert fallbacks[-1] == 0


async def test_nothing_is_stored_that_comes_from_a_fallback_summary() -> None:
    """Rule 10, over an outage that lasts the whole session."""
    clock = Clock()
    provider = ScriptedProvider(then=ProviderUnavailableError("down"), context_window=8_000, max_output_tokens=1_000)
    store = KeptStore()
    manager = SummarizingContextManager(store=store, clock=clock, sleep=clock.sleep, keep_recent=6)
    for row in recording()[:300]:
        await manager.add_message(row)
        if row["role"] == "assistant":
            await manager.get_messages_for_request(provider=provider)
            clock.time += 1
    shown = nodes(await manager.get_messages_for_request(provider=provider))
    assert any(row["metadata"]["level"] for row in shown), "nothing was merged"
    assert all(FALLBACK_LINE in row["content"] for row in shown)
    assert store.summaries == []


def test_a_summariser_that_hangs_is_told_once_until_a_summary_comes(caplog: pytest.LogCaptureFixture) -> None:
    """Every request is answered meanwhile; one warning names the setting, and the next comes only if it hangs again."""

    async def session() -> list[int]:
        told, gates = list[int](), [Gated(), Gated()]
        made = SummarizingContextManager(
            clock=asyncio.get_running_loop().time, wait_seconds=1, prefetch=False, keep_recent=4, segment_tokens=512
        )
        for turn in range(40):
            await feed(made, tool_session(1, size=600, start=turn))
            rows = await made.get_messages_for_request(4_000, gates[turn // 20])
            assert sum(map(measure, rows)) <= 4_000
            told.append(sum("wait_seconds (1)" in record.getMessage() for record in caplog.records))
            if turn == 19:
                gates[0].go.set()
                await asyncio.sleep(1)
        await made.close()
        return told

    told = run_virtually(session())
    assert (told[0], told[19], told[39]) == (0, 1, 2)


class HangingStore:
    """A store of the host's that never answers, and whose end fails."""

    async def get(self, keys: Any) -> Any:
        await asyncio.Event().wait()

    get_records = put = get

    async def put_record(self, hash_: str, record: Any) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        raise OSError("it is gone")


def test_a_store_of_the_hosts_that_hangs_holds_nobody_up() -> None:
    async def session() -> float:
        made, began = SummarizingContextManager(store=HangingStore(), keep_recent=4), asyncio.get_running_loop().time()
        await made.set_messages(tool_session(30, size=500))
        rows = await made.get_messages_for_request(3_000, ScriptedProvider())
        assert sum(map(measure, rows)) <= 3_000
        await made.close()
        return asyncio.get_running_loop().time() - began

    assert run_virtually(session()) < 10
