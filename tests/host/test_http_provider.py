"""The provider over HTTP, from the request on the wire to the view: answers, refusals, and what is lost on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import respx
from amplifier_core.llm_errors import (
    AccessDeniedError,
    AuthenticationError,
    InvalidRequestError,
    LLMError,
    NotFoundError,
    ProviderUnavailableError,
    RateLimitError,
)
from amplifier_core.message_models import ChatRequest, Message

from context_summarize import SummarizingContextManager
from context_summarize.errors import ConfigError
from context_summarize.messages.reading import broken_pairs
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.providers.openai_compatible import OpenAICompatibleProvider, make_provider
from context_summarize.testing import tool_session
from tests.support.recorder import Clock, Recorder
from tests.support.views import nodes

BASE_URL = "http://127.0.0.1:9/v1"
"""Loopback, and a port where nobody listens: a request that is not mocked fails and goes nowhere."""


def answer(text: str | None, *, finish_reason: str = "stop", cost: int = 50, **message: object) -> httpx.Response:
    """A good answer; `cost` tokens were written, 900 read."""
    said = {"role": "assistant", "content": text, **message}
    usage = {"prompt_tokens": 900, "completion_tokens": cost, "total_tokens": 900 + cost}
    choice = {"index": 0, "message": said, "finish_reason": finish_reason}
    return httpx.Response(200, json={"model": "chat-1-2026", "choices": [choice], "usage": usage})


def failure(status: int, message: str, code: str | None = None, **headers: str) -> httpx.Response:
    """An error, as servers of this protocol send it; `Retry_After="7"` becomes the header of that name."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


SUMMARY = "Goal: the user asked for the state of several orders. State: every one of them was found and shipped."
ROWS = tool_session(9, size=2_400)
"""Nine lookups of some 1,100 tokens each."""
SETTINGS: dict[str, Any] = {
    "keep_recent": 6,
    "prefetch": False,  # each answer of the server is for a compaction
    "segment_tokens": 2_000,
    "shorten_tool_results": None,
    "safety_margin": 0,
    "compact_threshold": 0.6,
}
"""With a window of 12,000 and output of 2,000 tokens: one compaction, of one segment."""
HELLO = ChatRequest(messages=[Message(role="user", content="Hello")], max_output_tokens=50)
KEY = "sk-not-a-key"
TOO_LONG = "This model's maximum context length is 3000 tokens. Please reduce the length of the messages."


@pytest.fixture
def chat() -> Iterator[respx.Route]:
    """The only way out: what no route takes is an error."""
    with respx.mock(assert_all_called=False) as router:
        yield router.post(f"{BASE_URL}/chat/completions")


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAICompatibleProvider]:
    monkeypatch.setenv("MY_KEY", KEY)
    made = make_provider(BASE_URL, "chat-1", context_window=12_000, max_output_tokens=5_000, key_env="MY_KEY")
    yield made
    await made.close()


def bodies(route: respx.Route) -> list[dict[str, Any]]:
    """What was sent, in order."""
    return [json.loads(call.request.content) for call in route.calls]


class Session:
    """A session that needs one summary, and what came of it."""

    def __init__(self, provider: OpenAICompatibleProvider, **settings: Any) -> None:
        self.clock, self.recorder, self.provider = Clock(), Recorder(), provider
        self.manager = SummarizingContextManager(
            self.recorder, config={**SETTINGS, **settings}, clock=self.clock, sleep=self.clock.sleep
        )

    async def view(self) -> list[JsonRow]:
        """The view; what must hold for every one of them is checked."""
        await self.manager.set_messages(ROWS)
        view = await self.manager.get_messages_for_request(provider=self.provider)
        assert await self.manager.get_messages() == ROWS, "the history is intact"
        assert broken_pairs(view) == []
        assert view[-6:] == ROWS[-6:]
        assert len(view) < len(ROWS)
        assert KEY not in str(self.recorder.events)
        await self.manager.close()
        return view

    async def summary(self) -> str:
        """The row that stands for the rows that were summarised."""
        [row] = nodes(await self.view())
        return str(row["content"])

    def failures(self) -> list[tuple[str, int]]:
        return [(data["kind"], data["attempts"]) for data in self.recorder.of("context-summarize:failure")]


class TestSummaries:
    async def test_a_summary_is_one_request_with_instructions_and_a_fenced_transcript(self, chat, provider):
        """System row, user row, room for the answer and the model: nothing beside it."""
        chat.side_effect = [answer(SUMMARY, cost=61)]
        session = Session(provider)
        assert SUMMARY in await session.summary()
        [body] = bodies(chat)
        system, user = body.pop("messages")
        assert body == {"model": "chat-1", "max_tokens": 2 * 125 + 2_000}
        assert (system["role"], user["role"]) == ("system", "user")
        assert "quoted data" in system["content"]
        assert "#1 user\nPlease look up order ORD00000" in user["content"]
        assert chat.calls[0].request.headers["Authorization"] == f"Bearer {KEY}"
        [event] = session.recorder.of("context-summarize:summary")
        assert (event["provider"], event["model"]) == ("openai-compatible", "chat-1-2026")
        assert event["usage"] == {"input_tokens": 900, "output_tokens": 61}

    @pytest.mark.parametrize(
        "lost",
        [
            failure(429, "slow down", Retry_After="7"),
            httpx.ConnectError("refused"),
        ],
        ids=str,
    )
    async def test_a_lost_request_is_asked_again_of_the_model_of_the_settings(self, chat, provider, lost):
        """As late as the server asks for."""
        chat.side_effect = [lost, answer(SUMMARY)]
        session = Session(provider, summary_model="small-1")
        assert SUMMARY in await session.summary()
        [waited] = session.clock.slept
        assert waited == 7.0 or "429" not in str(lost)
        first, second = bodies(chat)
        assert first == second
        assert first["model"] == "small-1"

    @pytest.mark.parametrize(
        ("response", "kind", "calls"),
        [
            (failure(401, f"incorrect key: {KEY}"), "auth", 1),
            (httpx.Response(200, text='{"choices": [{"mess'), "unavailable", 1),
            (failure(500, "oops"), "unavailable", 3),
            (answer(None, refusal="I will not."), "refusal", 2),
        ],
        ids=["401", "cut JSON", "500", "refusal"],
    )
    async def test_what_cannot_be_had_is_a_fallback_summary(self, chat, provider, response, kind, calls):
        """The failure is one event, and the view holds what code can say."""
        chat.side_effect = [response] * calls
        session = Session(provider)
        text = await session.summary()
        assert FALLBACK_LINE in text
        assert "ORD00000" in text
        assert session.failures() == [(kind, calls)]

    @pytest.mark.parametrize("refusal", [TOO_LONG, "the request exceeds the available context size"])
    async def test_a_refused_transcript_is_sent_without_its_middle(self, chat, provider, refusal):
        def serve(request: httpx.Request) -> httpx.Response:
            _, user = json.loads(request.content)["messages"]
            return failure(400, refusal) if len(user["content"]) > 8_000 else answer(SUMMARY)

        chat.side_effect = serve
        summary = await Session(provider).summary()
        assert SUMMARY in summary
        assert "[All this was too large to be read whole: " in summary
        assert "characters left out …]" in bodies(chat)[-1]["messages"][1]["content"]

    async def test_an_answer_cut_off_by_length_is_asked_again_with_more_room(self, chat, provider):
        chat.side_effect = [answer("Goal: the us", finish_reason="length"), answer(SUMMARY)]
        assert SUMMARY in await Session(provider).summary()
        first, second = bodies(chat)
        assert second["max_tokens"] > first["max_tokens"]


class TestErrors:
    @pytest.mark.parametrize(
        ("response", "kind", "retryable"),
        [
            (failure(401, "who are you"), AuthenticationError, False),
            (failure(403, "not yours"), AccessDeniedError, False),
            (failure(404, "no such model"), NotFoundError, False),
            (failure(422, "what?"), InvalidRequestError, False),
            (failure(429, "slow down"), RateLimitError, True),
            (httpx.Response(504, text="<html>"), ProviderUnavailableError, True),
            (httpx.Response(301, headers={"Location": "https://x.example/"}), LLMError, False),
            (httpx.Response(200, json=[]), LLMError, False),
            (httpx.Response(200, json={"choices": []}), LLMError, False),
        ],
    )
    async def test_what_a_server_refuses_is_an_error_of_the_hosts_taxonomy(
        self, chat, provider, response, kind, retryable
    ):
        chat.side_effect = [response]
        with pytest.raises(kind) as caught:
            await provider.complete(HELLO)
        assert type(caught.value) is kind
        assert caught.value.retryable is retryable
        assert len(chat.calls) == 1, "retries are the caller's business"

    async def test_the_key_is_in_no_error_even_where_the_server_repeats_it(self, chat, provider):
        chat.side_effect = [failure(401, f"incorrect key: {KEY}")]
        with pytest.raises(AuthenticationError, match=r"incorrect key: \[key\]") as caught:
            await provider.complete(HELLO)
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize(("given", "seconds"), [("12", 12.0), ("soon", None), ("", None)])
    async def test_the_wait_that_a_server_asks_for_is_seconds(self, chat, provider, given, seconds):
        chat.side_effect = [failure(429, "slow down", Retry_After=given)]
        with pytest.raises(RateLimitError) as caught:
            await provider.complete(HELLO)
        assert caught.value.retry_after == seconds


async def authorization(base_url: str, key_env: str | None = None) -> str | None:
    """The header with which a provider that was made so asks its server."""
    with respx.mock as router:
        route = router.post(f"{base_url}/chat/completions").mock(return_value=answer("hi"))
        made = make_provider(base_url, "m", key_env=key_env)
        await made.complete(HELLO)
        await made.close()
    found: str | None = route.calls[0].request.headers.get("Authorization")
    return found


class TestMaking:
    async def test_the_usual_key_goes_to_https_alone(self, monkeypatch):
        """A server on this machine or in this house is none of OpenAI's."""
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert await authorization("https://api.example.com/v1") == f"Bearer {KEY}"
        assert await authorization("http://127.0.0.1:8000/v1") is None
        assert await authorization("http://127.0.0.1:8000/v1", key_env="OPENAI_API_KEY") == f"Bearer {KEY}"
        monkeypatch.delenv("OPENAI_API_KEY")
        assert await authorization("https://api.example.com/v1") is None

    async def test_openai_is_asked_by_its_newer_name_of_the_limit(self):
        """Its newer models refuse the name that all other servers know."""
        with respx.mock as router:
            route = router.post("https://api.openai.com/v1/chat/completions").mock(return_value=answer("hi"))
            made = make_provider("https://api.openai.com/v1", "m")
            await made.complete(HELLO)
            await made.close()
        assert bodies(route)[0]["max_completion_tokens"] == 50

    def test_a_variable_that_was_named_has_to_be_set(self, monkeypatch):
        monkeypatch.setenv("MY_KEY", " ")
        with pytest.raises(ConfigError, match="MY_KEY is not set"):
            make_provider("https://api.example.com/v1", "m", key_env="MY_KEY")

    @pytest.mark.parametrize("base_url", ["api.example.com/v1", "http://", "http://[::1", "http://a:b"])
    def test_an_address_that_is_none_is_refused_with_an_example(self, base_url):
        with pytest.raises(ConfigError, match="base_url must be an http or https address such as"):
            make_provider(base_url, "m")

    def test_window_and_output_are_what_is_given_or_common(self):
        given = make_provider(BASE_URL, "m", context_window=16_000, max_output_tokens=500).get_info().defaults
        assert given == {"model": "m", "context_window": 16_000, "max_output_tokens": 500}
        common = make_provider(BASE_URL, "m").get_info().defaults
        assert (common["context_window"], common["max_output_tokens"]) == (128_000, 8_192)

    def test_without_httpx_everything_else_works_and_what_is_needed_is_named(self, monkeypatch):
        code = "import sys; sys.modules['httpx'] = None; import context_summarize.providers.openai_compatible"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        monkeypatch.setitem(sys.modules, "httpx", None)
        with pytest.raises(ConfigError, match=r"needs httpx.*pip install .httpx>="):
            make_provider(BASE_URL, "m")
