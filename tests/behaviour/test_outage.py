"""A provider or a store that is down: few calls, nothing lost, and summaries again once the provider is back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from amplifier_core.llm_errors import NotFoundError, ProviderUnavailableError

from context_summarize.testing import ScriptedProvider, broken_pairs
from tests.support.effort import LONG
from tests.support.gated import Gated
from tests.support.managed import Managed
from tests.support.recorder import Recorder, Screen, recording
from tests.support.rows import tool_session
from tests.support.views import size
from tests.support.virtual import run_virtually

STEP = 5
"""Seconds between two requests."""
ANSWER = "Goal: customers asked for bookings. State: done."


START = 120
"""Virtual seconds after which the outage begins."""


async def session(minutes: float, error: Exception) -> tuple[Recorder, list[float], list[tuple[float, int]]]:
    """The recorded session over an outage: (events, times of calls, time and fallbacks of compactions).

    Each call takes a second.
    """
    loop, called_at, compactions = asyncio.get_running_loop(), list[float](), list[tuple[float, int]]()
    end = START + minutes * 60

    async def then(request: Any) -> str:
        called_at.append(asked := loop.time())
        await asyncio.sleep(1)
        if START <= asked < end:
            raise error
        return ANSWER

    provider = ScriptedProvider(then=then, name="main", context_window=20_000, max_output_tokens=2_000)
    host = Recorder({"main": provider})
    made = Managed(provider=lambda: provider, host=host, clock=loop.time, keep_recent=6)
    rows = recording()[: 600 if minutes <= 10 else 900]
    for row in rows:
        if row["role"] == "assistant":
            before = host.compactions
            assert broken_pairs(await made.view()) == []
            assert await made.manager.get_token_count() <= 17_000
            if host.compactions > before:
                compactions.append((loop.time(), host.of("context:post_compact")[-1]["fallbacks"]))
            await asyncio.sleep(STEP)
            if not START <= loop.time() < end:
                await made.manager.observe_response("llm:response", {"provider": "main", "status": "ok", "usage": {}})
        await made.add([row])
    assert await made.rows() == rows
    await made.manager.close()
    return host, called_at, compactions


@pytest.mark.parametrize("minutes", [10, 15] if LONG else [10])
def test_an_outage_costs_few_calls_and_summaries_are_back_at_the_next_compaction(minutes):
    """Ten minutes: at most 12 calls. However long: the first compaction after it shows no fallback any more."""
    _, called_at, compactions = run_virtually(session(minutes, ProviderUnavailableError("down")))
    end = START + minutes * 60
    assert 1 <= len([at for at in called_at if START <= at < end]) <= 12 * minutes / 10
    assert any(count for at, count in compactions if START <= at < end), "the outage was never felt"
    after = [count for at, count in compactions if at > end]
    assert after, "no compaction after the outage: the session is too short for this test"
    assert after[0] == after[-1] == 0


def unknown_model(request: Any) -> str:
    if request.model == "gone":
        raise NotFoundError("no such model: gone")
    return ANSWER


async def test_a_wrong_summary_model_is_asked_for_once_and_the_user_is_told_once():
    """The agent's own model answers all the time."""
    provider, screen = ScriptedProvider(then=unknown_model, name="main"), Screen()
    screen.providers = {"main": provider}
    parts: dict[str, Any] = {"summary_provider": "main", "summary_model": "gone", "max_concurrency": 1}
    made = Managed(3_000, provider=lambda: provider, host=screen, keep_recent=4, segment_tokens=256, **parts)
    for turn in range(60):
        await made.add(tool_session(1, size=600, start=turn))
        await made.view()
        await made.manager.observe_response("llm:response", {"provider": "main", "model": "good", "status": "ok"})
    assert made.host.compactions > 3
    assert provider.calls == 1
    [line] = [line for level, line in screen.lines if level == "error"]
    assert "main (gone) writes no summary, and is not asked again in this session: NotFoundError" in line
    await made.manager.close()


def test_a_summariser_that_hangs_is_waited_for_and_told_once_until_a_summary_comes(caplog):
    """Every request is answered meanwhile; one warning names the setting, and the next comes only if it hangs again."""

    async def session() -> list[int]:
        loop = asyncio.get_running_loop()
        told, settings = list[int](), {"prefetch": False, "keep_recent": 4, "segment_tokens": 512, "wait_seconds": 1}
        made = Managed(4_000, provider=Gated, clock=loop.time, **settings)
        for turn in range(40):
            await made.add(tool_session(1, size=600, start=turn))
            assert size(await made.view()) <= 4_000
            told.append(sum("wait_seconds (1)" in record.getMessage() for record in caplog.records))
            if turn == 19:
                assert loop.time() == pytest.approx(1, abs=0.1)
                assert made.host.compactions == 1
                made.provider.go.set()
                await asyncio.sleep(1)
                made.provider = Gated()
        await made.manager.close()
        return told

    told = run_virtually(session())
    assert (told[0], told[19], told[39]) == (0, 1, 2)


def test_a_wait_that_brought_some_summaries_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Although those that it waited for last, or the merges of those that came, were not among them."""

    async def then(request: Any) -> str:
        await asyncio.sleep(1)
        return ANSWER

    async def waited() -> None:
        loop, provider = asyncio.get_running_loop(), ScriptedProvider(then=then)
        parts: dict[str, Any] = {"provider": lambda: provider, "clock": loop.time, "wait_seconds": 3}
        made = await Managed(4_000, **parts, keep_recent=4, segment_tokens=512).take(tool_session(60, size=600))
        await made.view()
        assert loop.time() == pytest.approx(3, abs=0.1)
        assert (await made.manager.statistics()).fallbacks > 0
        await made.manager.close()

    run_virtually(waited())
    assert "wait_seconds (3)" not in caplog.text


class HangingStore:
    """A store of the host's that never answers, and whose end fails."""

    async def hang(self, *given: Any) -> Any:
        await asyncio.Event().wait()

    get = put = get_records = put_record = hang

    async def close(self) -> None:
        raise OSError("it is gone")


def test_a_store_of_the_hosts_that_hangs_holds_nobody_up():
    async def session() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        made = await Managed(3_000, store=HangingStore(), keep_recent=4).take(tool_session(30, size=500))
        assert size(await made.view()) <= 3_000
        await made.manager.close()
        return loop.time() - began

    assert run_virtually(session()) < 10
