"""What a session does about summaries that are refused, late, or cannot be made."""

from __future__ import annotations

import asyncio
from typing import Any

from amplifier_core.llm_errors import AuthenticationError, RateLimitError

from context_summarize import SummarizingContextManager
from context_summarize.core.nodes import Summary
from context_summarize.core.segments import source
from context_summarize.events import FAILURE
from context_summarize.summaries.call import Summarizer
from context_summarize.testing import ScriptedProvider
from tests.support.gated import Gated, answer, questions, settle
from tests.support.recorder import Clock, Recorder
from tests.support.rows import feed, tool_session
from tests.support.views import nodes
from tests.support.virtual import run_virtually

BUDGET = 3_000
FALLBACK = "Fallback summary by code"


async def fed(recorder: Recorder | None = None, **settings: Any) -> SummarizingContextManager:
    """A session of some 4,500 tokens."""
    made = SummarizingContextManager(recorder, segment_tokens=512, keep_recent=4, prefetch=False, **settings)
    await feed(made, tool_session(24, size=600))
    return made


async def test_only_as_many_as_may_be_asked_at_once_are_read(monkeypatch):
    """Hundreds of segments may wait for a provider: their texts are not made, and held, before their turn."""
    read, provider = list[Any](), Gated()

    def source_of(*given: Any) -> Any:
        read.append(given)
        return source(*given)

    monkeypatch.setattr("context_summarize.summaries.jobs.source", source_of)
    made = await fed(max_concurrency=1)
    asking = asyncio.create_task(made.get_messages_for_request(BUDGET, provider))
    await provider.asked.wait()
    await settle()
    assert (provider.calls, len(read)) == (1, 1)
    provider.go.set()
    await asking
    assert 2 < len(read) <= provider.calls
    await made.close()


async def test_a_part_whose_answers_were_refused_three_times_is_not_asked_for_again():
    """Two answers each time. Other parts are not concerned, and a cleared session begins anew."""

    def refused(request: Any) -> str:
        return "" if "order ORD00000" in str(request.messages[1].content) else answer(request)

    clock, provider = Clock(), ScriptedProvider(then=refused)
    made = await fed(clock=clock, sleep=clock.sleep, summary_share=0.6)
    asked = []
    for start in range(24, 96, 12):
        view = await made.get_messages_for_request(BUDGET, provider)
        asked.append(sum("order ORD00000" in question for question in questions(provider)))
        assert str(view).count(FALLBACK) <= 1
        clock.time += 10_000
        await feed(made, tool_session(12, size=600, start=start))
    assert (asked[0], asked[-1]) == (2, 6)
    await made.clear()
    await feed(made, tool_session(8, size=600))
    await made.get_messages_for_request(1_000, provider)
    assert sum("order ORD00000" in question for question in questions(provider)) > 6


async def test_an_error_of_our_own_leaves_a_fallback(monkeypatch, caplog):
    """Whatever goes wrong while a summary is made costs that summary only, and is logged without secrets."""
    token = "ghp_" + "Ab1" * 12

    async def broken(*_: Any) -> Summary:
        raise ValueError(f"no row for {token}")

    monkeypatch.setattr(Summarizer, "make", broken)
    view = await (await fed()).get_messages_for_request(BUDGET, ScriptedProvider())
    assert FALLBACK in str(view)
    assert "a summary could not be made" in caplog.text
    assert token not in caplog.text


async def test_a_failure_is_told_with_every_key():
    made = await fed(recorder := Recorder())
    await made.get_messages_for_request(BUDGET, ScriptedProvider(then=RateLimitError("slow", retry_after=300.0)))
    told = recorder.of(FAILURE)[0]
    assert len(told.pop("key")) == 64
    assert told == {
        "level": 0, "kind": "rate_limit", "error": "RateLimitError: slow", "attempts": 1, "retry_in_s": 300.0,
    }  # fmt: skip


def test_what_was_late_once_is_not_waited_for_again():
    """Unless it failed and is asked for anew; the work goes on, and is there for the next compaction."""
    is_down = True

    def then(request: Any) -> str:
        if is_down:
            raise AuthenticationError("401")
        return answer(request)

    async def session() -> list[float]:
        nonlocal is_down
        loop, provider, waits = asyncio.get_running_loop(), Gated(then), list[float]()
        made = await fed(clock=loop.time, wait_seconds=5)
        budget = int(await made.get_token_count() / 0.9)
        for turn in range(5):
            began = loop.time()
            view = await made.get_messages_for_request(budget, provider)
            waits.append(loop.time() - began)
            assert bool(nodes(view)) is (turn == 4)
            if turn in (1, 3):
                is_down = turn == 1
                provider.go.set()
                await asyncio.sleep(100)
                provider.go.clear()
        await made.close()
        return waits

    assert run_virtually(session()) == [5, 0, 5, 0, 0]
