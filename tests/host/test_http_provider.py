"""The provider over HTTP, on the wire: requests, answers, refusals, and what is lost on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import respx
from amplifier_core import llm_errors as errors
from amplifier_core.message_models import ChatRequest, Message

from context_summarize.errors import ConfigError
from context_summarize.providers.openai_compatible import OpenAICompatibleProvider, make_provider
from tests.support.chat_server import serving

BASE_URL = "https://127.0.0.1:9/v1"
"""Loopback, and a port where nobody listens: a request that is not mocked fails and goes nowhere."""


def answer(text: str | None, *, finish_reason: str = "stop", cost: int = 50, **message: object) -> httpx.Response:
    """A good answer; `cost` tokens were written, 900 read."""
    said = {"role": "assistant", "content": text, **message}
    usage = {"prompt_tokens": 900, "completion_tokens": cost, "total_tokens": 900 + cost}
    choice = {"index": 0, "message": said, "finish_reason": finish_reason}
    return httpx.Response(200, json={"model": "chat-1-2026", "choices": [choice], "usage": usage})


def failure(status: int, message: str, **headers: str) -> httpx.Response:
    """An error, as servers of this protocol send it."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": None}}
    return httpx.Response(status, json=body, headers=headers)


HELLO = ChatRequest(messages=[Message(role="user", content="Hello")], max_output_tokens=50)
KEY = "sk-not-a-key"


@pytest.fixture
def chat() -> Iterator[respx.Route]:
    """The only way out: what no route takes is an error."""
    with respx.mock(assert_all_called=False) as router:
        yield router.post(f"{BASE_URL}/chat/completions")


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAICompatibleProvider]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = make_provider(BASE_URL, "chat-1", context_window=12_000, max_output_tokens=5_000)
    yield made
    await made.close()


async def test_a_request_on_the_wire_and_its_answer(chat, provider):
    """Rows, room for the answer and the model: nothing beside it."""
    chat.side_effect = [answer("Goal: done.", cost=61)]
    rows = [Message(role="system", content="Summarise."), Message(role="user", content="Rain.")]
    said = await provider.complete(ChatRequest(messages=rows, max_output_tokens=50), model="small-1")
    [sent] = chat.calls
    shown = [{"role": "system", "content": "Summarise."}, {"role": "user", "content": "Rain."}]
    assert json.loads(sent.request.content) == {"model": "small-1", "max_tokens": 50, "messages": shown}
    assert sent.request.headers["Authorization"] == f"Bearer {KEY}"
    assert (said.content[0].text, said.finish_reason) == ("Goal: done.", "stop")
    assert (said.usage.input_tokens, said.usage.output_tokens) == (900, 61)
    assert said.metadata == {"model": "chat-1-2026"}


async def test_a_refusal_is_told_from_an_answer(chat, provider):
    """Its text stands in a place of its own."""
    chat.side_effect = [answer(None, refusal="I will not.")]
    said = await provider.complete(HELLO)
    assert (said.content[0].text, said.finish_reason) == ("I will not.", "refusal")
    assert json.loads(chat.calls[0].request.content)["model"] == "chat-1"


REFUSED: dict[type[errors.LLMError], list[Any]] = {
    errors.AuthenticationError: [failure(401, f"incorrect key: {KEY}")],
    errors.AccessDeniedError: [failure(403, "not yours")],
    errors.NotFoundError: [failure(404, "no such model")],
    errors.InvalidRequestError: [failure(422, "what?")],
    errors.LLMError: [
        httpx.Response(301, headers={"Location": "https://x.example/"}),
        httpx.Response(200, json=[]),
        httpx.Response(200, text='{"choices": [{"mess'),
        httpx.Response(200, json={"choices": []}),
    ],
}
AFTER: list[dict[str, Any]] = [{}, {"Retry-After": "soon"}, {"Retry-After": "12"}]
LATER: dict[type[errors.LLMError], list[Any]] = {
    errors.RateLimitError: [failure(429, "slow down", **after) for after in AFTER],
    errors.ProviderUnavailableError: [httpx.Response(504, text="<html>"), httpx.ConnectError("refused")],
    errors.LLMTimeoutError: [httpx.ReadTimeout("late")],
}
"""What may be asked for again."""


@pytest.mark.parametrize("kind", [*REFUSED, *LATER])
async def test_what_a_server_refuses_and_a_lost_connection_are_errors_of_the_hosts_taxonomy(chat, provider, kind):
    chat.side_effect = given = {**REFUSED, **LATER}[kind]
    for sent in list(given):
        said = str(sent) if isinstance(sent, Exception) else f"HTTP {sent.status_code}"
        with pytest.raises(kind, match=said) as caught:
            await provider.complete(HELLO)
        assert type(caught.value) is kind
        assert caught.value.retryable is (kind in LATER)
        after = getattr(sent, "headers", {}).get("Retry-After")
        assert caught.value.retry_after == (12.0 if after == "12" else None)
        assert KEY not in str(caught.value), "some servers repeat it"
    assert len(chat.calls) == len(given), "retries are the caller's business"


async def asked(base_url: str) -> Any:
    """The request with which a provider that was made so asks its server."""
    with respx.mock as router:
        route = router.post(f"{base_url}/chat/completions").mock(return_value=answer("hi"))
        made = make_provider(base_url, "m")
        await made.complete(HELLO)
        await made.close()
    return route.calls[0].request


async def test_a_server_on_this_machine_is_not_behind_the_environments_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(lambda body: "Goal: done.") as server:
        made = make_provider(server.address, "chat-1", context_window=12_000, max_output_tokens=5_000)
        assert "Goal: done." in str((await made.complete(HELLO)).content)
        await made.close()


async def test_the_usual_key_goes_to_https_alone(monkeypatch):
    """A server on this machine or in this house is none of OpenAI's."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for address, key in (("https://api.example.com/v1", f"Bearer {KEY}"), ("http://127.0.0.1:8000/v1", None)):
        assert (await asked(address)).headers.get("Authorization") == key


async def test_openai_is_asked_by_its_newer_name_of_the_limit_and_without_a_key_if_there_is_none(monkeypatch):
    """Its newer models refuse the name that all other servers know."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    request = await asked("https://api.openai.com/v1")
    assert json.loads(request.content)["max_completion_tokens"] == 50
    assert "Authorization" not in request.headers


@pytest.mark.parametrize("base_url", ["api.example.com/v1", "http://", "http://[::1", "http://a:b", "http://a:99999"])
def test_an_address_that_is_none_is_refused_with_an_example(base_url):
    with pytest.raises(ConfigError, match="base_url must be an http or https address such as"):
        make_provider(base_url, "m")


def test_without_httpx_everything_else_works_and_what_is_needed_is_named(monkeypatch):
    code = "import sys; sys.modules['httpx'] = None; import context_summarize.providers.openai_compatible"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigError, match=r"needs httpx.*pip install .httpx>="):
        make_provider(BASE_URL, "m")
