"""Calls for summaries: what they ask besides a summary, and what counts as an attempt."""

from __future__ import annotations

from typing import Any

import pytest
from amplifier_core.llm_errors import InvalidRequestError, RateLimitError
from amplifier_core.message_models import ChatRequest, ChatResponse

from context_summarize import SummarizingContextManager
from context_summarize.session.statistics import Statistics
from context_summarize.testing import ScriptedProvider, text_response, tool_session
from tests.support.recorder import Clock, Recorder

ANSWER = "Goal: the orders were looked up. State: shipped."
ALL = {"store": False, "extended_thinking": False}


class Played:
    """A request over a history that needs summaries, and what came of it."""

    def __init__(self, clock: Clock | None = None, **settings: Any) -> None:
        clock = clock or Clock()
        self.recorder = Recorder()
        settings = {"keep_recent": 2, "segment_tokens": 512, "max_concurrency": 1, **settings}
        self.manager = SummarizingContextManager(self.recorder, config=settings, clock=clock, sleep=clock.sleep)

    async def request(self, provider: Any, turns: int = 16) -> Statistics:
        """The statistics after the request."""
        await self.manager.set_messages(tool_session(turns, size=900))
        await self.manager.get_messages_for_request(8_000, provider)
        return await self.manager.statistics()

    def attempts(self) -> list[int]:
        """Attempts for each summary that was made."""
        return [data["attempts"] for data in self.recorder.of("context-summarize:summary")]

    def failures(self) -> list[tuple[str, int]]:
        """(kind, attempts) of each summary that could not be had."""
        return [(data["kind"], data["attempts"]) for data in self.recorder.of("context-summarize:failure")]


class Plain:
    """A provider whose `complete()` takes nothing but the request."""

    name = "plain"

    async def complete(self, request: ChatRequest) -> ChatResponse:
        return text_response(ANSWER)


class Wrapped:
    """A wrapper that takes options and hands them on to a provider that takes none."""

    name = "wrapped"

    def __init__(self) -> None:
        self.provider = Plain()
        self.calls = 0

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        self.calls += 1
        return await self.provider.complete(request, **options)


async def test_answers_are_not_to_be_stored_and_not_to_be_thought_about() -> None:
    """`store: false`, little reasoning, and no thinking where an effort alone would turn it on."""
    provider = ScriptedProvider(then=ANSWER)
    await Played(summary_model="small").request(provider)
    assert provider.options[0] == {**ALL, "model": "small"}
    assert provider.requests[0].reasoning_effort == "low"


async def test_a_provider_that_chains_answers_is_asked_not_to() -> None:
    """A chained answer is stored on the server whatever `store` says. Others never see that option."""
    provider = ScriptedProvider(then=ANSWER)
    provider.enable_response_chaining = "auto"  # type: ignore[attr-defined]
    await Played().request(provider)
    assert provider.options[0] == {**ALL, "enable_response_chaining": False}


@pytest.mark.parametrize(
    ("error", "effort", "options"),
    [
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", None, {"store": False}),
        ("requires reasoning.effort in {'medium', 'high'}; got 'low'", None, {"store": False}),
        ("Unknown parameter: 'store'", "low", {}),
    ],
)
async def test_a_refused_hint_is_left_out_at_once_and_from_then_on(
    error: str, effort: str | None, options: dict[str, Any]
) -> None:
    """The summary is not lost for it, even where nothing is retried, and the next request does not try again."""
    provider, played = ScriptedProvider([InvalidRequestError(error)], then=ANSWER), Played()
    await played.request(provider)
    assert played.failures() == []
    assert [request.reasoning_effort for request in provider.requests[:3]] == ["low", effort, effort]
    assert provider.options[:3] == [ALL, options, options]


async def test_a_call_that_is_repeated_without_a_hint_is_an_attempt() -> None:
    """Statistics and events count every call that the provider saw."""
    provider, played = Wrapped(), Played()
    statistics = await played.request(provider)
    assert statistics.calls == provider.calls
    assert played.attempts()[0] == 2
    assert set(played.attempts()[1:]) == {1}


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequestError("neither store nor reasoning"),
        TypeError("complete() got an unexpected keyword argument 'model'"),
    ],
)
async def test_a_call_that_is_repeated_without_a_hint_counts_for_the_breaker(error: Exception) -> None:
    """A provider that refuses whatever it is asked is called five times."""
    provider, played = ScriptedProvider(then=error), Played(summary_model="small")
    statistics = await played.request(provider)
    assert statistics.calls == provider.calls == 5
    assert sum(attempts for _, attempts in played.failures()) == 5


async def test_any_other_error_is_the_providers() -> None:
    """Nothing is asked again at once."""
    played = Played()
    error = RateLimitError("reasoning", retryable=False)
    await played.request(ScriptedProvider([error], then=ANSWER))
    assert played.failures() == [("rate_limit", 1)]
