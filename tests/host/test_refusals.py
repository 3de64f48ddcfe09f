"""A provider that refuses a request for its length gets smaller ones; whose refusal it was is told apart."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.paths import ROOT
from tests.support.recorder import Recorder
from tests.support.rows import feed, tool_session, user
from tests.support.session import is_summary_request, tokens_of
from tests.support.views import size

ROWS = tool_session(12)
WINDOW, MOST = 40_000, 5_000
"""What the provider says of itself, and what it takes."""

LINES = [line.split(": ", 1) for line in (ROOT / "tests" / "corpora" / "refusals.txt").read_text("utf-8").splitlines()]
REFUSALS, OTHERS = (
    {name.removeprefix(kind): words for name, words in LINES if name.startswith(kind)}
    for kind in ("too long, ", "another error, ")
)
"""The words of providers, by whose they are and by what else is wrong."""


@pytest.mark.parametrize("is_mute", [False, True], ids=["words of the provider", "words of the loop alone"])
@pytest.mark.parametrize(("window", "refused"), [(None, 1), (WINDOW, 2)], ids=["unknown", "named"])
async def test_a_refused_request_becomes_smaller_and_stays_so(hosts, caplog, window, refused, is_mute):
    """Whoever tells of it, it counts once. Only a provider that names a larger window is tried once more.

    The user goes on after a refusal, as loops do.
    """
    caplog.set_level(logging.WARNING, "context_summarize")
    host = await hosts(context_window=window, most=MOST, is_mute=is_mute)
    for _ in range(50):
        with contextlib.suppress(RuntimeError):
            await host.talk(1)

    assert len(host.provider.refused) == refused
    own = [tokens_of(request) for request in host.provider.requests if not is_summary_request(request)]
    assert max(own[-40:]) <= MOST
    [warning] = [record.getMessage() for record in caplog.records]
    assert "'SessionProvider' has refused a request" in warning


async def told(
    *events: tuple[str, dict[str, Any]], window: Any = WINDOW
) -> tuple[SummarizingContextManager, ScriptedProvider]:
    """A manager with a request that has no answer yet, after these events and one request more."""
    provider = ScriptedProvider(context_window=window)
    manager = SummarizingContextManager(Recorder({"main": provider, "fast": ScriptedProvider(name="another")}))
    await feed(manager, ROWS)
    await manager.get_messages_for_request(provider=provider)
    for name, data in events:
        await manager.observe_response(name, data)
    await manager.get_messages_for_request(provider=provider)
    return manager, provider


def refused(words: str, provider: str = "scripted") -> tuple[str, dict[str, Any]]:
    """The event of a call that its provider refuses with these words."""
    return "llm:response", {"provider": provider, "model": "one", "status": "error", "error": words}


def answered_with(usage: Any, provider: str = "scripted") -> tuple[str, dict[str, Any]]:
    return "llm:response", {"provider": provider, "model": "one", "status": "ok", "usage": usage}


def failed(kind: str, words: str) -> tuple[str, dict[str, Any]]:
    """What a loop tells of its own call."""
    return "provider:error", {"provider": "scripted", "error": {"type": kind, "msg": words}}


@pytest.mark.parametrize("words", REFUSALS.values(), ids=REFUSALS)
async def test_the_words_of_many_providers_say_that_a_request_is_too_long(words):
    """What another provider answers to a helper frees nothing."""
    manager, provider = await told(refused(words))
    bound = (await manager.statistics()).budget or 0
    assert bound < size(ROWS)
    await manager.observe_response(*answered_with({"input_tokens": 9_000}, "another"))
    await manager.get_messages_for_request(provider=provider)
    assert (await manager.statistics()).budget == bound


TOO_LONG = refused(REFUSALS["OpenAI"])
FIGURES = {"input_tokens": 2_600, "output_tokens": 5}


@pytest.mark.parametrize(
    "events",
    [
        *([refused(words)] for words in OTHERS.values()),
        *([answered_with(usage), TOO_LONG] for usage in (FIGURES, None, {})),
        *([TOO_LONG, answered_with(usage)] for usage in (FIGURES, None, {})),
        [failed("NetworkError", "Connection error."), TOO_LONG],
        [refused(REFUSALS["vLLM"], "another")],
    ],
)
async def test_other_errors_and_the_refusals_of_helpers_are_no_bound(events):
    """A helper is refused beside an answer to the host, after a failure that the loop told, or by its own provider."""
    manager, _ = await told(*events)
    assert (await manager.statistics()).budget == 35_000


async def test_a_helper_that_is_refused_while_a_recorder_notes_the_answer_binds_nothing():
    """A loop that claims usage may tell of an answer that the figures of no event show; it measures the view."""
    manager, provider = await told()
    record = manager.claim_foreground_usage()
    for turn in range(3):
        await manager.add_message(user(f"Hello {turn}. " * 800))
        view = await manager.get_messages_for_request(provider=provider)
        await manager.observe_response(*TOO_LONG)
        tokens = size(view) * 3 // 2
        assert record(input_tokens=tokens)
        assert await manager.get_token_count() == pytest.approx(tokens, rel=0.05)
    await manager.get_messages_for_request(provider=provider)
    assert (await manager.statistics()).budget == 35_000


async def answered(manager: SummarizingContextManager, provider: ScriptedProvider, times: int = 1) -> int | None:
    """The budget of the last of so many requests that are answered."""
    for _ in range(times):
        await manager.add_message(user("Go on."))
        await manager.get_messages_for_request(provider=provider)
        usage = {"input_tokens": await manager.get_token_count(), "output_tokens": 1}
        await manager.observe_response(*answered_with(usage))
    return (await manager.statistics()).budget


async def test_a_named_window_is_tried_once_more_after_an_answer_and_not_after_a_second_refusal():
    """A refusal may come of a fault that passes; where the provider names a window, it is tried once more."""
    manager, provider = await told(refused(REFUSALS["vLLM"]))
    bound = await answered(manager, provider)
    assert 0.8 * size(ROWS) < (bound or 0) < size(ROWS), "hardly smaller than what was refused"
    assert await answered(manager, provider) == 35_000
    await manager.add_message(user("Once more. " * 2_000))
    await manager.get_messages_for_request(provider=provider)
    await manager.observe_response(*failed("ContextLengthError", "400"))
    assert await answered(manager, provider, 30) == bound


async def test_a_limit_that_a_refusal_names_is_believed_at_once():
    """It stays, whatever window the provider reports, or if it reports none; of two numbers it is the right one."""
    for words, limit in {
        "This model's maximum context length is 3,072 tokens. However, your messages resulted in 4100 tokens.": 3_072,
        "prompt is too long: 4100 tokens > 3072 maximum": 3_072,
        "input length and `max_tokens` exceed context limit: 3100 + 16000 > 8192": 8_192,
        "The input token count (4100) exceeds the maximum number of tokens allowed (3072).": 3_072,
    }.items():
        for window in (WINDOW, None):
            manager, provider = await told(refused(words), window=window)
            most = max(limit // 4 * 3 - 1_000, (limit // 4 + 1_000) // 2)
            assert ((await manager.statistics()).budget or 0) <= most, words
            assert await answered(manager, provider, 20) == most, words
