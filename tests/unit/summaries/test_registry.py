"""What a session does about summaries that are refused, late, or cannot be made."""

from __future__ import annotations

import asyncio
from typing import Any

from amplifier_core.llm_errors import ProviderUnavailableError

from context_summarize.testing import ScriptedProvider
from tests.support.gated import Gated, answer, questions
from tests.support.managed import Managed
from tests.support.recorder import Clock
from tests.support.rows import tool_session
from tests.support.views import nodes
from tests.support.virtual import run_virtually

FALLBACK = "Fallback summary by code"
TOKEN = "ghp_" + "Ab1" * 12


async def fed(provider: ScriptedProvider, **settings: Any) -> Managed:
    """A session of some 4,500 tokens."""
    made = Managed(3_000, provider=lambda: provider, segment_tokens=512, keep_recent=4, prefetch=False, **settings)
    return await made.add(tool_session(24, size=600))


async def test_a_part_whose_answers_were_refused_three_times_is_not_asked_for_again():
    """Two answers each time. Other parts are not concerned, and a cleared session begins anew."""

    def refused(request: Any) -> str:
        return "" if "order ORD00000" in str(request.messages[1].content) else answer(request)

    clock, provider = Clock(), ScriptedProvider(then=refused)
    made = await fed(provider, clock=clock, sleep=clock.sleep, summary_share=0.6)
    asked = []
    for start in range(24, 96, 12):
        assert str(await made.view()).count(FALLBACK) <= 1
        asked.append(sum("order ORD00000" in question for question in questions(provider)))
        clock.time += 10_000
        await made.add(tool_session(12, size=600, start=start))
    assert (asked[0], asked[-1]) == (2, 6)
    await made.manager.clear()
    await (await made.add(tool_session(8, size=600))).view(1_000)
    assert sum("order ORD00000" in question for question in questions(provider)) > 6


class Odd(Exception):
    """Raises when it is looked at."""

    @property
    def retry_after(self) -> float:
        raise ValueError(f"no row for {TOKEN}")


async def test_whatever_goes_wrong_while_a_summary_is_made_costs_that_summary_only(caplog):
    """The log tells it without secrets."""
    made = await fed(ScriptedProvider(then=Odd()))
    assert FALLBACK in str(await made.view())
    assert "a summary could not be made" in caplog.text
    assert TOKEN not in caplog.text


def test_what_was_late_once_is_not_waited_for_again():
    """Unless it failed and is asked for anew; the work goes on, and is there for the next compaction."""
    is_down = True

    def then(request: Any) -> str:
        if is_down:
            raise ProviderUnavailableError("503", retryable=False)
        return answer(request)

    async def session() -> list[float]:
        nonlocal is_down
        loop, provider, waits = asyncio.get_running_loop(), Gated(then), list[float]()
        made = await fed(provider, clock=loop.time, wait_seconds=5)
        made.budget = int(await made.manager.get_token_count() / 0.9)
        for turn in range(5):
            began = loop.time()
            view = await made.view()
            waits.append(loop.time() - began)
            assert bool(nodes(view)) is (turn == 4)
            if turn in (1, 3):
                is_down = turn == 1
                provider.go.set()
                await asyncio.sleep(100)
                provider.go.clear()
        await made.manager.close()
        return waits

    assert run_virtually(session()) == [5, 0, 5, 0, 0]
