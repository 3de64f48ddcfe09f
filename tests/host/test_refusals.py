"""A provider that refuses a request for its length gets smaller ones; whose refusal it was is told apart."""

from __future__ import annotations

import contextlib
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


async def talk(host: Host, turns: int) -> None:
    """So many turns of a user who goes on after a refusal, as loops do."""
    for _ in range(turns):
        with contextlib.suppress(RuntimeError):
            await host.talk(1)


@pytest.mark.parametrize("is_mute", [False, True], ids=["words of the provider", "words of the loop alone"])
@pytest.mark.parametrize(("window", "refused"), [(None, 1), (WINDOW, 2)], ids=["unknown", "named"])
async def test_a_refused_request_becomes_smaller_and_stays_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, window: int | None, refused: int, is_mute: bool
) -> None:
    """Whoever tells of it, it counts once. Only a provider that names a larger window is tried once more."""
    caplog.set_level(logging.WARNING, "context_summarize")
    host = await Host(monkeypatch, SETTINGS, context_window=window, most=MOST, is_mute=is_mute).start()
    await talk(host, 80)

    assert len(host.provider.refused) == refused
    after = sent(host)[-60:]
    assert max(after) <= MOST
    [told] = [record.getMessage() for record in caplog.records]
    assert "'SessionProvider' has refused a request" in told
    await host.end()


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


async def one_refusal(error: str, window: Any = WINDOW) -> tuple[SummarizingContextManager, ScriptedProvider]:
    """A manager whose first request was refused with these words."""
    manager, provider = SummarizingContextManager(), ScriptedProvider(context_window=window)
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


async def answered(manager: SummarizingContextManager, provider: ScriptedProvider, times: int = 1) -> int | None:
    """The budget of the last of so many requests that are answered."""
    for _ in range(times):
        await manager.add_message(user("Go on."))
        await manager.get_messages_for_request(provider=provider)
        usage = {"input_tokens": await manager.get_token_count(), "output_tokens": 1}
        await manager.observe_response("llm:response", {"provider": "scripted", "status": "ok", "usage": usage})
    return (await manager.statistics()).budget


async def test_a_bound_is_lifted_after_ten_answers_and_stays_after_a_second_refusal() -> None:
    """A refusal may come of a fault that passes; where the provider names a window, it is tried once more."""
    manager, provider = await one_refusal(REFUSALS["vLLM"])
    bound = await answered(manager, provider, 10)
    assert (bound or 0) < 4_000
    assert await answered(manager, provider) == 35_000
    await manager.add_message(user("Once more. " * 2_000))
    await manager.get_messages_for_request(provider=provider)
    error = {"type": "ContextLengthError", "msg": "400"}
    await manager.observe_response("provider:error", {"provider": "scripted", "error": error})
    assert await answered(manager, provider, 30) == bound


async def test_a_limit_that_a_refusal_names_is_believed_at_once() -> None:
    """It stays, whatever window the provider reports, or if it reports none; of two numbers it is the right one."""
    for words, limit in {
        "This model's maximum context length is 3,072 tokens. However, your messages resulted in 4100 tokens.": 3_072,
        "prompt is too long: 4100 tokens > 3072 maximum": 3_072,
        "input length and `max_tokens` exceed context limit: 3100 + 16000 > 8192": 8_192,
        "The input token count (4100) exceeds the maximum number of tokens allowed (3072).": 3_072,
    }.items():
        for window in (WINDOW, None):
            manager, provider = await one_refusal(words, window)
            most = max(limit // 4 * 3 - 1_000, (limit // 4 + 1_000) // 2)
            assert ((await manager.statistics()).budget or 0) <= most, words
            assert await answered(manager, provider, 20) == most, words


async def test_a_helper_that_is_refused_after_another_failure_of_the_host_binds_nothing() -> None:
    """The loop has told how its own call ended."""
    manager, provider = SummarizingContextManager(), ScriptedProvider(context_window=WINDOW)
    await manager.add_message(user("Hello. " * 800))
    await manager.get_messages_for_request(provider=provider)
    error = {"type": "NetworkError", "msg": "Connection error."}
    await manager.observe_response("provider:error", {"provider": "scripted", "error": error})
    refused = {"provider": "scripted", "model": "one", "status": "error", "error": REFUSALS["OpenAI"]}
    await manager.observe_response("llm:response", refused)
    await manager.get_messages_for_request(provider=provider)
    assert (await manager.statistics()).budget == 35_000


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


async def test_a_recorder_that_is_claimed_once_measures_the_newest_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest loop-streaming claims `context.foreground_usage` once and keeps what it gets."""
    host = Host(monkeypatch, SETTINGS, context_window=WINDOW)
    host.loop = type(host.loop)(claims=True)
    await host.start()
    await host.talk(30)

    assert await host.context.get_token_count() == pytest.approx(sent(host)[-1], rel=0.05)
    await host.end()
