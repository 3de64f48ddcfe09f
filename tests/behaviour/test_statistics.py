"""What a session's summaries have taken: calls, tokens, cost, waiting, and what the view shows of them."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, Usage

from context_summarize.summaries.services import Statistics
from context_summarize.testing import ScriptedProvider, text_response
from tests.support.gated import Gated, answer
from tests.support.managed import Managed
from tests.support.recorder import Clock
from tests.support.rows import tool_session, user
from tests.support.views import nodes, size

SMALL: dict[str, Any] = {"segment_tokens": 64, "keep_recent": 4, "prefetch": False}


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
    clock = Clock()
    made = await Managed(900, provider=Billing, clock=clock, sleep=clock.sleep, **SMALL).take(tool_session(12))
    await made.view()
    told, bills = await made.manager.statistics(), made.provider.bills
    assert told.calls == len(bills) > 3
    assert told.failed == told.fallbacks
    assert told.input_tokens == sum(bill.input_tokens for bill in bills) > 0
    assert told.output_tokens == sum(bill.output_tokens for bill in bills) > 0
    assert Decimal(told.cost_usd or 0) == sum(bill.cost_usd or 0 for bill in bills)


async def test_seconds_of_waiting_are_counted_by_the_request() -> None:
    """Their number, sum and longest; a request that waits for nothing is none."""
    clock = Clock()
    made = Managed(900, clock=clock, sleep=clock.sleep, **SMALL)
    for at, seconds in ((0, 2.5), (12, 7.25)):
        made.provider = Gated()
        await made.add(tool_session(12, start=at))
        request = asyncio.create_task(made.view())
        await made.provider.asked.wait()
        clock.time += seconds
        made.provider.go.set()
        await request
        await made.view()
    told = await made.manager.statistics()
    assert (told.waits, told.waited_s, told.longest_wait_s) == (2, 9.75, 7.25)
    assert told.compactions == 2


async def test_before_the_first_request_there_is_no_budget() -> None:
    """Nobody has said yet how much a request may hold; asking makes no compaction and no call."""
    made = Managed(**SMALL)
    assert await made.manager.statistics() == Statistics(
        messages=0, view_tokens=0, budget=None, requests=0, compactions=0, calls=0, failed=0, input_tokens=0,
        output_tokens=0, cost_usd=None, from_cache=0, waits=0, waited_s=0.0, longest_wait_s=0.0, summaries=0,
        fallbacks=0,
    )  # fmt: skip
    await made.take(tool_session(12))
    await made.manager.compact()
    told = await made.manager.statistics()
    assert (told.budget, told.compactions) == (None, 1)


async def test_rows_budget_and_compactions() -> None:
    """A host that asks three times has made one request."""
    made = await Managed(900, **SMALL).add(tool_session(12))
    for _ in range(3):
        view = await made.view()
    told = await made.manager.statistics()
    assert (told.messages, told.requests, told.budget) == (48, 1, 900)
    assert told.compactions == made.host.compactions == 1
    assert told.view_tokens == await made.manager.get_token_count() == size(view)
    assert told.summaries == len(nodes(view)) > 0
    await (await made.add([user("more")])).view(1_000)
    told = await made.manager.statistics()
    assert (told.messages, told.requests, told.budget) == (49, 2, 1_000)
