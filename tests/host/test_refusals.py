"""A provider that refuses a request for its length gets smaller ones; whose refusal it was is told apart."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from amplifier_core.llm_errors import InvalidRequestError

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Recorder
from tests.support.rows import tool_session, user
from tests.support.session import Host, is_summary_request, tokens_of

SETTINGS = {"safety_margin": 500, "segment_tokens": 512, "keep_recent": 6, "shorten_tool_results": None}
WINDOW, MOST = 40_000, 5_000
"""What the provider says of itself, and what it takes."""

REFUSALS = {
    "OpenAI": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "OpenAI, chat": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000.",
    "vLLM": "You passed 40960 input tokens and requested 1 output tokens. However, the model's context length is 8",
    "vLLM, engine": "The decoder prompt (length 21535) is longer than the maximum model length of 16384.",
    "Anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "Anthropic, both": "input length and `max_tokens` exceed context limit: 189127 + 16000 > 200000",
    "llama.cpp": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "llama.cpp, 500": "Context size has been exceeded.",
    "llama-cpp-python": "Requested tokens (2285) exceed context window of 2048",
    "Gemini": "The input token count (317740) exceeds the maximum number of tokens allowed (131072).",
    "Bedrock": "Input is too long for requested model.",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "by its type": "ContextLengthError: 400",
}
OTHERS = {
    "rate": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
    "rate, Anthropic": "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    "output": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "down": "Connection error.",
    "late": "Your request took too long to process. Please try again.",
    "one field": "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got 83.",
}


@pytest.fixture
async def host(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    host = await Host(monkeypatch, SETTINGS, context_window=WINDOW, most=MOST).start()
    yield host
    await host.end()


def sent(host: Host) -> list[int]:
    """Tokens of the host's own requests, as the provider counts."""
    own = [request for request in host.provider.requests if not is_summary_request(request)]
    return [tokens_of(request) for request in own]


async def until_refused(host: Host) -> None:
    with pytest.raises(RuntimeError, match="exceeds the context window"):
        await host.talk(60)


async def test_a_refused_request_becomes_smaller_and_stays_so(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """A loop goes on with the next prompt: it passes, and so does every later one."""
    caplog.set_level(logging.WARNING, "context_summarize")
    await until_refused(host)
    before = len(host.provider.requests)
    await host.talk(40)

    assert len(host.provider.refused) == 1
    after = sent(host)[-80:]
    assert len(host.provider.requests) > before + 80
    assert max(after) <= MOST
    assert after[0] <= 0.9 * host.provider.refused[0]
    [told] = [record.getMessage() for record in caplog.records]
    assert "refused" in told
    assert "scripted-1" in told


async def test_a_refused_summary_or_another_helpers_request_binds_nothing(host: Host) -> None:
    """Our own calls are marked; a helper is refused while no request of the host's is without an answer."""
    hooks = host.session.coordinator.hooks
    host.provider.most = None
    host.provider.summary = InvalidRequestError("prompt is too long: 208310 tokens > 200000 maximum")
    await host.talk(8)
    refused = {"provider": "scripted", "model": "scripted-1", "status": "error", "error": REFUSALS["OpenAI"]}
    await hooks.emit("llm:response", refused)
    await host.context.compact()
    await host.talk(1)

    assert host.provider.gone_wrong > 0
    assert (await host.context.statistics()).budget == WINDOW - 500 - 500


@pytest.mark.parametrize("usage", ["figures", None, {}])
@pytest.mark.parametrize("is_before", [True, False])
async def test_a_helper_that_is_refused_beside_an_answer_to_the_host_binds_nothing(
    host: Host, usage: Any, is_before: bool
) -> None:
    host.provider.most = None
    await host.talk(3)
    rows = await host.context.get_messages_for_request(provider=host.provider)
    told = {"provider": "scripted", "model": "scripted-1"}
    figures = {"input_tokens": sum(len(str(row["content"])) for row in rows) // 4, "output_tokens": 5}
    refused = {**told, "status": "error", "error": REFUSALS["OpenAI"]}
    answered = {**told, "status": "ok", "usage": usage and figures}
    for data in (refused, answered) if is_before else (answered, refused):
        await host.session.coordinator.hooks.emit("llm:response", data)
    await host.talk(1)

    assert (await host.context.statistics()).budget == WINDOW - 500 - 500


async def one_refusal(error: str) -> tuple[SummarizingContextManager, ScriptedProvider]:
    """A manager whose first request was refused with these words."""
    manager, provider = SummarizingContextManager(), ScriptedProvider(context_window=WINDOW)
    for row in tool_session(12):
        await manager.add_message(row)
    await manager.get_messages_for_request(provider=provider)
    told = {"provider": "scripted", "model": "one", "status": "error", "error": error}
    await manager.observe_response("llm:response", told)
    await manager.get_messages_for_request(provider=provider)
    return manager, provider


async def test_a_helper_that_is_refused_while_a_recorder_notes_the_answer_binds_nothing() -> None:
    """A loop that claims usage may tell of an answer that the figures of no event show."""
    manager, provider = SummarizingContextManager(), ScriptedProvider(context_window=WINDOW)
    record = manager.claim_foreground_usage()
    await manager.add_message(user("Hello. " * 800))
    await manager.get_messages_for_request(provider=provider)
    refused = {"provider": "scripted", "model": "one", "status": "error", "error": REFUSALS["OpenAI"]}
    await manager.observe_response("llm:response", refused)
    assert record(input_tokens=await manager.get_token_count())
    await manager.get_messages_for_request(provider=provider)
    assert (await manager.statistics()).budget == 35_000


async def test_the_words_of_many_providers_say_that_a_request_is_too_long() -> None:
    for name, error in REFUSALS.items():
        manager, _ = await one_refusal(error)
        assert ((await manager.statistics()).budget or 0) < 4_000, name


async def test_other_errors_are_no_bound() -> None:
    for name, error in OTHERS.items():
        manager, _ = await one_refusal(error)
        assert (await manager.statistics()).budget == 35_000, name


async def test_what_one_model_refuses_binds_no_other() -> None:
    """Which model is asked shows in its answers."""
    manager, provider = await one_refusal(REFUSALS["vLLM"])
    budgets = []
    for model in ("one", "two", "one", "one"):
        await manager.get_messages_for_request(provider=provider)
        budgets.append((await manager.statistics()).budget)
        usage = {"input_tokens": await manager.get_token_count(), "output_tokens": 1}
        told = {"provider": "scripted", "model": model, "status": "ok", "usage": usage}
        await manager.observe_response("llm:response", told)
        await manager.add_message(user("Go on."))

    assert [(budget or 0) < 4_000 for budget in budgets] == [True, True, False, True]


async def test_what_another_provider_says_binds_and_frees_nothing() -> None:
    """A helper may ask one of its own while the host's request has no answer, or never gets one."""
    provider = ScriptedProvider(context_window=WINDOW)
    manager = SummarizingContextManager(Recorder({"main": provider, "fast": ScriptedProvider(name="another")}))
    for row in tool_session(12):
        await manager.add_message(row)

    async def budget_after(name: str, **told: Any) -> int | None:
        await manager.get_messages_for_request(provider=provider)
        await manager.observe_response("llm:response", {"provider": name, "model": "one", **told})
        await manager.get_messages_for_request(provider=provider)
        return (await manager.statistics()).budget

    refused = {"status": "error", "error": REFUSALS["vLLM"]}
    assert await budget_after("another", **refused) == 35_000
    bound = await budget_after("scripted", **refused) or 0
    assert bound < 4_000
    assert await budget_after("another", status="ok", usage={"input_tokens": 9_000}) == bound


async def test_a_bound_is_dropped_when_a_request_as_large_passes() -> None:
    """The host's prompt cannot shrink and is sent all the same; an answer to it proves the bound wrong."""
    manager, provider = SummarizingContextManager(), ScriptedProvider(context_window=WINDOW)
    await manager.add_message(user("Hello."))

    async def prompt() -> str:
        return "You are a clerk. " * 800

    async def request(**told: Any) -> int | None:
        await manager.get_messages_for_request(provider=provider)
        budget = (await manager.statistics()).budget
        await manager.observe_response("llm:response", {"provider": "scripted", "model": "one", **told})
        return budget

    await manager.set_system_prompt_factory(prompt)
    usage = {"input_tokens": 4_100, "output_tokens": 1}
    assert await request(status="error", error=REFUSALS["vLLM"]) == 35_000
    assert (await request(status="ok", usage=usage) or 0) < 4_000
    assert await request(status="ok", usage=usage) == 35_000


async def test_a_recorder_that_is_claimed_once_measures_the_newest_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest loop-streaming claims `context.foreground_usage` once and keeps what it gets."""
    host = Host(monkeypatch, SETTINGS, context_window=WINDOW)
    host.loop = type(host.loop)(claims=True)
    await host.start()
    await host.talk(30)

    assert await host.context.get_token_count() == pytest.approx(sent(host)[-1], rel=0.05)
    await host.end()
