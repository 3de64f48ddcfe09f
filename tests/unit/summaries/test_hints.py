"""Hints: what is asked of providers besides a summary, and what happens when one refuses it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from amplifier_core.llm_errors import InvalidRequestError, RateLimitError
from amplifier_core.message_models import ChatRequest, ChatResponse, Message

from context_summarize.summaries.hints import LITTLE_REASONING, Hints
from context_summarize.testing import ScriptedProvider, text_response

REQUEST = ChatRequest(messages=[Message(role="user", content="x")], reasoning_effort=LITTLE_REASONING)
ALL = {"store": False, "extended_thinking": False}


async def test_answers_are_not_to_be_stored_and_not_to_be_thought_about() -> None:
    """`store: false`, little reasoning, and no thinking where an effort alone would turn it on."""
    provider = ScriptedProvider(["ok"])
    await Hints().complete(provider, REQUEST, {"model": "small"})
    assert provider.options == [{**ALL, "model": "small"}]
    assert provider.requests[0].reasoning_effort == "low"


async def test_a_provider_that_chains_answers_is_asked_not_to() -> None:
    """A chained answer is stored on the server whatever `store` says. Others never see that option."""
    provider = ScriptedProvider(["ok"])
    provider.enable_response_chaining = "auto"  # type: ignore[attr-defined]
    await Hints().complete(provider, REQUEST, {})
    assert provider.options == [{**ALL, "enable_response_chaining": False}]


class Plain:
    """A provider whose `complete()` takes nothing but the request."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatResponse:
        self.requests.append(request)
        return text_response("ok")


class Wrapped:
    """A wrapper that takes options and hands them on to a provider that takes none."""

    def __init__(self, provider: Plain) -> None:
        self._provider = provider

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        return await self._provider.complete(request, **options)


@pytest.mark.parametrize("wrap", [lambda plain: plain, Wrapped])
async def test_a_provider_that_takes_no_options_gets_none(wrap: Any) -> None:
    """It is asked all the same."""
    plain = Plain()
    await Hints().complete(wrap(plain), REQUEST, {})
    assert plain.requests == [REQUEST]


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
    """The summary is not lost for it, and the next request does not try again."""
    provider, hints = ScriptedProvider([InvalidRequestError(error), "one", "two"]), Hints()
    for _ in range(2):
        await hints.complete(provider, REQUEST, {})
    assert [request.reasoning_effort for request in provider.requests] == ["low", effort, effort]
    assert provider.options == [ALL, options, options]


async def test_calls_side_by_side_are_asked_again_each() -> None:
    """Both gave the hint, and both were refused."""

    def refuse(request: ChatRequest) -> str:
        if request.reasoning_effort:
            raise InvalidRequestError("no reasoning here")
        return "ok"

    provider, hints = ScriptedProvider(then=refuse), Hints()
    await asyncio.gather(*(hints.complete(provider, REQUEST, {}) for _ in range(3)))
    assert provider.calls == 6


@pytest.mark.parametrize("error", [InvalidRequestError("a wrong request"), RateLimitError("reasoning too often")])
async def test_any_other_error_is_the_providers(error: Exception) -> None:
    """Nothing is asked again here."""
    provider = ScriptedProvider([error, "ok"])
    with pytest.raises(type(error)):
        await Hints().complete(provider, REQUEST, {})
    assert provider.calls == 1
