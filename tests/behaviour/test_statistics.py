"""What a session's summaries have taken: calls, tokens, cost, waiting, and what the view shows of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from amplifier_core.llm_errors import RateLimitError
from amplifier_core.message_models import ChatRequest, ChatResponse

from context_summarize import SummarizingContextManager
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider, text_response, tool_session, user
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.gated import Gated, answer
from tests.support.recorder import Clock, Recorder

SMALL: dict[str, Any] = {
    "segment_tokens": 64,
    "keep_recent": 4,
    "prefetch": False,
}
COUNT = TokenCounter().count


def manager(recorder: Recorder | None = None, clock: Clock | None = None, **more: Any) -> SummarizingContextManager:
    clock = clock or Clock()
    return SummarizingContextManager(
        recorder, clock=clock, sleep=clock.sleep, **{"store": MemoryStore()} | SMALL | more
    )


class Billing(ScriptedProvider):
    """Writes a bill for every answer: what it read and wrote, and what it costs, where `price` says so."""

    def __init__(self, price: Callable[[int], Any] = lambda _: None, **more: Any) -> None:
        super().__init__(**{"then": self._billed, **more})
        self.price = price
        self.bills: list[tuple[int, int]] = []
        self.texts: list[str] = []
        """Answered before summaries are."""

    def _billed(self, request: ChatRequest) -> ChatResponse:
        response = text_response(self.texts.pop(0) if self.texts else answer(request), request)
        assert response.usage is not None
        self.bills.append((response.usage.input_tokens, response.usage.output_tokens))
        response.usage.cost_usd = self.price(len(self.bills))
        return response


def assert_billed(told: Statistics, provider: Billing) -> None:
    assert told.input_tokens == sum(read for read, _ in provider.bills) > 0
    assert told.output_tokens == sum(wrote for _, wrote in provider.bills) > 0


async def told_after(provider: Any, **more: Any) -> tuple[Statistics, Recorder]:
    """The statistics of a session with one compaction."""
    made = manager(recorder := Recorder(), **more)
    await made.set_messages(tool_session(12))
    await made.get_messages_for_request(900, provider)
    told = await made.statistics()
    await made.close()
    return told, recorder


class TestCalls:
    async def test_calls_and_tokens_are_those_that_the_provider_told(self) -> None:
        """Of segments and merges."""
        provider = Billing()
        told, _ = await told_after(provider)
        assert (told.calls, told.failed) == (provider.calls, 0)
        assert provider.calls > 1
        assert_billed(told, provider)

    async def test_calls_that_fail_are_calls(self) -> None:
        """Those that were retried, and those that came to nothing in the end."""
        provider = ScriptedProvider([RateLimitError("slow down")] * 2, then=answer)
        told, _ = await told_after(provider)
        assert (told.calls, told.failed) == (provider.calls, 0)
        provider = ScriptedProvider(then=RateLimitError("slow down"))
        told, recorder = await told_after(provider)
        assert told.calls == provider.calls > 0
        failures = [data for data in recorder.of("context-summarize:failure") if data["attempts"]]
        assert told.failed == len(failures) > 0
        assert (told.input_tokens, told.output_tokens, told.cost_usd) == (0, 0, None)

    async def test_an_answer_that_is_refused_is_paid_for_all_the_same(self) -> None:
        """Also when nothing came of its key."""
        provider = Billing(lambda _: Decimal("0.25"))
        provider.texts = [""] * 1_000
        told, _ = await told_after(provider)
        assert told.summaries == told.fallbacks > 0
        assert told.calls == len(provider.bills) > 0
        assert told.input_tokens == sum(read for read, _ in provider.bills)
        assert Decimal(told.cost_usd or 0) == Decimal("0.25") * len(provider.bills)


class TestCost:
    async def test_amounts_are_added_exactly(self) -> None:
        """As decimals: a tenth ten times is one."""
        provider = Billing(lambda number: Decimal("0.1") + number * Decimal("0.0000001"))
        told, _ = await told_after(provider)
        calls = provider.calls
        assert calls > 2
        assert told.cost_usd is not None
        assert Decimal(told.cost_usd) == calls * Decimal("0.1") + calls * (calls + 1) // 2 * Decimal("0.0000001")


class TestWaiting:
    async def test_seconds_are_counted_by_the_request(self) -> None:
        """Their number, sum and longest; a request that waits for nothing is none."""
        clock = Clock()
        made = manager(clock=clock)
        rows = tool_session(24)
        for at, seconds in ((0, 2.5), (12, 7.25)):
            provider = Gated()
            for row in rows[at * 2 : at * 2 + 48 - at]:
                await made.add_message(row)
            request = asyncio.create_task(made.get_messages_for_request(900, provider))
            await provider.asked.wait()
            clock.time += seconds
            provider.go.set()
            await request
            await made.get_messages_for_request(900, provider)
        told = await made.statistics()
        assert (told.waits, told.waited_s, told.longest_wait_s) == (2, 9.75, 7.25)
        assert told.compactions == 2


class TestTheView:
    async def test_before_the_first_request_there_is_nothing(self) -> None:
        """No budget; asking makes no compaction and no call."""
        made = manager()
        assert await made.statistics() == Statistics(
            messages=0, view_tokens=0, budget=None, requests=0, compactions=0, calls=0, failed=0, input_tokens=0,
            output_tokens=0, cost_usd=None, from_cache=0, waits=0, waited_s=0.0, longest_wait_s=0.0, summaries=0,
            fallbacks=0,
        )  # fmt: skip

    async def test_rows_budget_and_compactions(self) -> None:
        """A host that asks three times has made one request."""
        made, provider = manager(recorder := Recorder()), ScriptedProvider(then=answer)
        for row in tool_session(12):
            await made.add_message(row)
        for _ in range(3):
            view = await made.get_messages_for_request(900, provider)
        told = await made.statistics()
        assert (told.messages, told.requests, told.budget) == (48, 1, 900)
        assert told.compactions == recorder.count("context:compaction") == 1
        assert told.view_tokens == await made.get_token_count() == sum(measure(row, COUNT) for row in view)
        assert told.summaries == sum("messages" in (row.get("metadata") or {}) for row in view) > 0
        await made.add_message(user("more"))
        await made.get_messages_for_request(1_000, provider)
        told = await made.statistics()
        assert (told.messages, told.requests, told.budget) == (49, 2, 1_000)
