"""Work ahead of need: what the next compaction shows is made while the session goes on, in virtual time."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from amplifier_core.llm_errors import ProviderUnavailableError

from context_summarize import Config
from context_summarize.testing import ScriptedProvider, broken_pairs
from tests.support.effort import full
from tests.support.gated import Shortening
from tests.support.managed import Managed
from tests.support.recorder import Recorder, recording
from tests.support.rows import tool_session, user
from tests.support.virtual import run_virtually

TURN = 1.0
"""Virtual seconds between two requests."""


class Slow(Shortening):
    """Takes its time over every answer."""

    def __init__(self, seconds: float, context_window: int) -> None:
        super().__init__(context_window=context_window, max_output_tokens=context_window // 10)
        self.seconds = seconds
        self.asked: list[str] = []
        self.under_way = self.most = 0

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        self.asked.append(str(request.messages[-1].content))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        return await super().complete(request, **kwargs)


async def session(provider: Any, rows: list[dict[str, Any]], **settings: Any) -> tuple[Managed, float]:
    """The rows, a turn apart, with this provider; how long requests have waited."""
    loop, waited = asyncio.get_running_loop(), 0.0
    made = Managed(provider=lambda: provider, host=Recorder({"main": provider}), clock=loop.time, **settings)
    for row in rows:
        if row["role"] == "assistant":
            await asyncio.sleep(TURN)
            asked = loop.time()
            assert broken_pairs(await made.view()) == []
            waited += loop.time() - asked
        await made.add([row])
    await made.manager.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return made, waited


def test_a_summariser_twenty_times_slower_than_a_turn_is_hardly_waited_for():
    """At most 5 % of the waiting without prefetching, with no more calls, no fallback, and never too many at once."""
    rows = recording()[: full(800, 400)]
    plain, waited = run_virtually(session(Slow(20 * TURN, 40_000), rows, prefetch=False))
    ahead, waited_ahead = run_virtually(session(Slow(20 * TURN, 40_000), rows))
    assert waited > full(60, 15)
    assert waited_ahead <= 0.05 * waited
    assert len(ahead.provider.asked) <= len(plain.provider.asked) + 6
    assert len(set(ahead.provider.asked)) == len(ahead.provider.asked)
    assert 1 < ahead.provider.most <= 4
    for made in (plain, ahead):
        assert not any(data["fallbacks"] for data in made.host.of("context:post_compact"))


def test_work_ahead_can_be_waited_for_and_what_hangs_is_waited_for_once():
    """A replay does so between its turns: it takes no time, where a session does."""

    async def settled(seconds: float) -> tuple[list[float], int]:
        loop = asyncio.get_running_loop()
        made = Managed(30_000, provider=lambda: Slow(seconds, 40_000), clock=loop.time)
        await (await made.take(recording()[:120])).view()
        waits = []
        for _ in range(2):
            before = loop.time()
            await made.manager.settle()
            waits.append(loop.time() - before)
        left = made.provider.under_way
        assert made.provider.asked
        await made.manager.close()
        return waits, left

    assert run_virtually(settled(5)) == ([5, 0], 0)
    waits, left = run_virtually(settled(10_000))
    assert waits == [Config().wait_seconds, 0]
    assert left > 0


def test_a_failing_provider_is_asked_ahead_once_and_again_at_the_compaction():
    """No call is repeated while the session only grows; the compaction shows fallbacks, and later ones summaries."""
    failures: list[Exception | str] = [ProviderUnavailableError("down", provider="main", retryable=False)] * 2
    provider = ScriptedProvider(failures, then="Goal: flights. State: booked.", name="main", context_window=40_000)
    made, _ = run_virtually(session(provider, recording()[: full(1_340, 600)]))
    assert made.host.of("context:post_compact")[-1]["fallbacks"] == 0
    failed = [data["key"] for data in made.host.of("context-summarize:failure")]
    assert len(failed) == 2
    summaries = {data["key"] for data in made.host.of("context-summarize:summary")}
    assert set(failed) <= summaries, "what failed ahead was never made"


async def test_summaries_are_begun_two_thirds_of_the_way_to_the_next_compaction():
    made, turns = Managed(12_000, compact_threshold=0.5, segment_tokens=512), count()
    while not made.provider.calls:
        await made.add(tool_session(1, size=600, start=next(turns)))
        await made.view()
        await made.manager.settle()
    assert 4_000 <= await made.manager.get_token_count() < 4_500


async def test_the_next_compaction_comes_twenty_rows_later_at_the_earliest_unless_the_base_is_full():
    """Its cost is a new prompt cache."""
    made = Managed(24_000, compact_threshold=0.5, segment_tokens=512, keep_recent=4, prefetch=False)
    await (await made.take(tool_session(15, size=2_400))).view()
    assert made.host.compactions == 1
    large, rows = [user("word " * 14_000), *(user(f"{at}") for at in range(40))], 0
    while made.host.compactions == 1:
        await (await made.add([large[rows]])).view()
        rows += 1
    assert rows == 20
