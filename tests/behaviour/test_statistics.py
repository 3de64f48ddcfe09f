"""What a session's summaries have taken: calls, tokens, cost, waiting, and what the view shows of them."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, Usage

from context_summarize import SummarizingContextManager
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider, text_response
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.gated import Gated, answer
from tests.support.recorder import Clock, Recorder
from tests.support.rows import feed, tool_session, user

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
    """Writes a bill for every answer: what it read and wrote, and what it costs. Every third answer is no summary."""

    def __init__(self) -> None:
        super().__init__(then=self._billed)
        self.bills: list[Usage] = []

    def _billed(self, request: ChatRequest) -> ChatResponse:
        response = text_response(answer(request) if (len(self.bills) + 1) % 3 else "", request)
        assert response.usage is not None
        response.usage.cost_usd = Decimal("0.1") + len(self.bills) * Decimal("0.0000001")
        self.bills.append(response.usage)
        return response


async def test_calls_tokens_and_cost_are_those_of_all_bills() -> None:
    """Of segments, merges and refused answers; amounts are added exactly, as decimals."""
    made, provider = manager(), Billing()
    await made.set_messages(tool_session(12))
    await made.get_messages_for_request(900, provider)
    told = await made.statistics()
    assert told.calls == len(provider.bills) > 3
    assert told.failed == told.fallbacks
    assert told.input_tokens == sum(bill.input_tokens for bill in provider.bills) > 0
    assert told.output_tokens == sum(bill.output_tokens for bill in provider.bills) > 0
    assert Decimal(told.cost_usd or 0) == sum(bill.cost_usd or 0 for bill in provider.bills)


class TestWaiting:
    async def test_seconds_are_counted_by_the_request(self) -> None:
        """Their number, sum and longest; a request that waits for nothing is none."""
        clock = Clock()
        made = manager(clock=clock)
        rows = tool_session(24)
        for at, seconds in ((0, 2.5), (12, 7.25)):
            provider = Gated()
            await feed(made, rows[at * 2 : at * 2 + 48 - at])
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

    async def test_a_compaction_before_the_first_request_gives_no_budget(self) -> None:
        """Nobody has said yet how much a request may hold."""
        made = manager()
        await made.set_messages(tool_session(12))
        await made.compact()
        told = await made.statistics()
        assert (told.budget, told.compactions) == (None, 1)

    async def test_rows_budget_and_compactions(self) -> None:
        """A host that asks three times has made one request."""
        made, provider = manager(recorder := Recorder()), ScriptedProvider(then=answer)
        await feed(made, tool_session(12))
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
