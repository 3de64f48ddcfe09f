"""Compactions: what their events and the session's statistics tell, and what happens when one is not made after all."""

from __future__ import annotations

from dataclasses import astuple
from decimal import Decimal
from typing import Any
from unittest.mock import AsyncMock

from amplifier_core.message_models import ChatRequest, ChatResponse, Usage

from context_summarize.events import COMPACTION, FINISHED, POST_COMPACT, PRE_COMPACT, STARTED
from context_summarize.testing import ScriptedProvider, measure, text_response
from context_summarize.tokens.counter import TokenCounter
from tests.support.gated import answer
from tests.support.managed import Managed
from tests.support.recorder import Clock
from tests.support.rows import tool_session
from tests.support.views import nodes, size

COUNT = TokenCounter().count


def session(budget: int | None = None, **given: Any) -> Managed:
    return Managed(budget, **{"segment_tokens": 64, "prefetch": False, "keep_recent": 4, **given})


def wordy(request: ChatRequest) -> str:
    """Nearly as long as what it stands for, and just short enough for the gate."""
    return "".join(f" word {at}" for at in range(int(0.3 * COUNT(str(request.messages[1].content)))))


async def test_the_payloads_tell_sizes_before_and_after_and_the_reason():
    made = await session(900).take(tool_session(8))
    view = await made.view()
    [pre], [post], [told] = (made.host.of(name) for name in (PRE_COMPACT, POST_COMPACT, COMPACTION))
    assert (pre["message_count"], pre["budget"], pre["reason"]) == (32, 900, "must_fit")
    assert pre["tokens"] == size(tool_session(8)) > 900
    assert post["message_count"] == len(view)
    assert post["tokens"] == size(view)
    assert post["tokens_saved"] == pre["tokens"] - size(view)
    assert post["segments"] > post["merged"] >= 0
    assert (post["from_cache"], post["fallbacks"]) == (0, 0)
    assert post["wait_ms"] >= 0
    assert (told["before_messages"], told["after_messages"]) == (32, len(view))
    assert (told["before_tokens"], told["after_tokens"]) == (pre["tokens"], size(view))
    assert (told["budget"], told["target_tokens"], told["strategy_level"]) == (900, 135, 1)
    [finished] = made.host.of(FINISHED)
    sizes = {"input_tokens_before": pre["tokens"], "input_tokens_after": size(view)}
    assert finished == {"outcome": "completed", **sizes}


async def test_a_compaction_whose_summaries_turn_out_too_large_is_not_made_and_says_that_it_saved_nothing():
    settings = {"segment_tokens": 256, "summary_share": 1.0, "shorten_tool_results": None}
    made = await session(0, provider=lambda: ScriptedProvider(then=wordy), **settings).take(tool_session(5, size=900))
    made.budget = int(await made.manager.get_token_count() / 0.8)
    before = await made.view()
    assert nodes(before) == []
    told = [name for name in made.host.names() if name.startswith("context:")]
    assert told == [PRE_COMPACT, STARTED, POST_COMPACT, FINISHED]
    assert made.host.of(FINISHED)[0]["outcome"] == "cancelled"
    [pre], [post] = made.host.of(PRE_COMPACT), made.host.of(POST_COMPACT)
    assert (post["tokens"], post["tokens_saved"]) == (pre["tokens"], 0)
    assert (post["segments"], post["merged"], post["fallbacks"]) == (0, 0, 0)
    assert post["message_count"] == pre["message_count"]
    calls = made.provider.calls
    assert calls > 0
    assert await made.view() == before
    assert (made.provider.calls, made.host.count(PRE_COMPACT)) == (calls, 1)


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


async def test_calls_tokens_and_cost_are_those_of_all_bills():
    """Of segments, merges and refused answers; amounts are added exactly, as decimals."""
    clock = Clock()
    made = await session(900, provider=Billing, clock=clock, sleep=clock.sleep).take(tool_session(12))
    await made.view()
    told, bills = await made.manager.statistics(), made.provider.bills
    assert told.calls == len(bills) > 3
    assert told.failed >= told.fallbacks > 0
    assert told.input_tokens == sum(bill.input_tokens for bill in bills) > 0
    assert told.output_tokens == sum(bill.output_tokens for bill in bills) > 0
    assert Decimal(told.cost_usd or 0) == sum(bill.cost_usd or 0 for bill in bills)


async def test_the_parts_of_a_request_are_told_and_add_up_to_it():
    """Once the provider has counted, also what the tools take beside the rows."""
    made = session(3_000)
    await made.manager.set_system_prompt_factory(AsyncMock(return_value="Be brief. " * 20))
    await made.take([{"role": "system", "content": "hidden"}, *tool_session(30, size=400)])
    view = await made.view()
    told = await made.manager.statistics()
    ours = [row for row in view if (row.get("metadata") or {}).get("source") == "context-summarize"]
    summaries = sum(measure(row) for row in ours if "level" in row["metadata"])
    assert told.parts.summaries == summaries > 0
    assert told.parts.thread == sum(measure(row) for row in ours) - summaries > 0
    assert told.parts.system == measure(view[0])
    assert told.parts.before == measure(view[1])
    assert (told.parts.tools, sum(astuple(told.parts))) == (0, told.view_tokens)

    usage = {"usage": {"input_tokens": told.view_tokens + 500}}
    await made.manager.observe_response("llm:response", {"status": "ok", **usage})
    told = await made.manager.statistics()
    assert told.parts.tools == 500
    assert sum(astuple(told.parts)) == told.view_tokens


async def test_before_the_first_request_there_is_no_budget():
    """Nobody has said yet how much a request may hold; asking makes no compaction and no call."""
    made = session()
    told = await made.manager.statistics()
    assert (told.budget, told.cost_usd) == (None, None)
    assert {*astuple(told.parts)} == {0}
    assert {value for value in astuple(told) if value != astuple(told.parts)} == {0, None}
    await made.take(tool_session(12))
    await made.manager.compact()
    told = await made.manager.statistics()
    assert (told.budget, told.compactions) == (None, 1)
