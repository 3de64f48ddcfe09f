"""The provider for OpenAI-compatible servers: requests, answers and errors in its protocol, and a server of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx
from amplifier_core.llm_errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    InvalidToolCallError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)
from amplifier_core.message_models import ChatRequest, Message, ToolSpec

from context_summarize import SummarizingContextManager
from context_summarize.errors import ConfigError
from context_summarize.messages.pairs import broken_pairs
from context_summarize.providers.openai_compatible import CONTEXT_WINDOW, OpenAICompatibleProvider, make_provider
from context_summarize.session.host import provider_window
from context_summarize.testing import tool_session
from tests.support import chat_server
from tests.support.chat_completions import BASE_URL, answer, failure

HELLO = ChatRequest(messages=[Message(role="user", content="Hello")])
KEY = "sk-not-a-key"


@pytest.fixture
def server() -> Iterator[respx.MockRouter]:
    """The only way out: what no route takes is an error."""
    with respx.mock(base_url=BASE_URL, assert_all_called=False) as router:
        yield router


@pytest.fixture
def chat(server: respx.MockRouter) -> respx.Route:
    return server.post("/chat/completions")


@pytest.fixture
async def provider(server):
    made = OpenAICompatibleProvider(BASE_URL, "chat-1", api_key=KEY, context_window=8_000)
    yield made
    await made.close()


def sent(route: respx.Route, at: int = -1) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(route.calls[at].request.content)
    return body


class TestRequests:
    async def test_a_request_names_model_rows_limit_and_nothing_that_was_not_asked_for(self, chat, provider):
        chat.side_effect = [answer("hi")]

        await provider.complete(HELLO.model_copy(update={"max_output_tokens": 50}))

        messages = [{"role": "user", "content": "Hello"}]
        assert sent(chat) == {"model": "chat-1", "messages": messages, "max_completion_tokens": 50}
        assert chat.calls[0].request.headers["Authorization"] == f"Bearer {KEY}"

    async def test_options_and_tools_are_passed_on(self, chat, provider):
        chat.side_effect = [answer("hi")]
        options = {"temperature": 0.0, "stop": ["END"], "tool_choice": "auto", "reasoning_effort": "low"}
        tool = ToolSpec(name="lookup", parameters={"type": "object"}, description="Looks up.")

        await provider.complete(HELLO.model_copy(update={**options, "tools": [tool]}))

        body = sent(chat)
        assert {name: body[name] for name in options} == options
        function = {"name": "lookup", "parameters": {"type": "object"}, "description": "Looks up."}
        assert body["tools"] == [{"type": "function", "function": function}]

    async def test_a_tool_without_a_description_is_passed_on_without_one(self, chat, provider):
        """llama.cpp's server refuses null there; a null inside the parameters is the tool's own."""
        chat.side_effect = [answer("hi")]
        parameters = {"type": "object", "properties": {"at": {"type": "string", "default": None}}}

        await provider.complete(HELLO.model_copy(update={"tools": [ToolSpec(name="lookup", parameters=parameters)]}))

        [tool] = sent(chat)["tools"]
        assert tool["function"] == {"name": "lookup", "parameters": parameters}

    async def test_the_model_of_the_call_goes_before_that_of_the_request_and_the_provider(self, chat, provider):
        chat.side_effect = lambda request: answer("hi")
        named = HELLO.model_copy(update={"model": "request-1"})

        await provider.complete(named, model="call-1")
        await provider.complete(named)

        assert [sent(chat, at)["model"] for at in (0, 1)] == ["call-1", "request-1"]

    async def test_rows_of_every_shape_become_rows_of_the_protocol(self, chat, provider):
        """Calls from blocks and from `tool_calls` once each, results as rows, images as addresses, no thinking."""
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
        block = {"type": "tool_call", "id": "a", "name": "ls", "input": {"p": "ü"}}
        rows: list[dict[str, Any]] = [
            {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "ok"}, block],
                "tool_calls": [{"id": "a", "tool": "ls", "arguments": {"p": "ü"}}, {"id": "b", "tool": "pwd"}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "x"},
            {"role": "user", "content": [{"type": "tool_result", "tool_call_id": "b", "output": {"y": 1}}]},
        ]
        chat.side_effect = [answer("hi")]

        await provider.complete(ChatRequest(messages=[Message(**row) for row in rows]))

        user, assistant, first, second = sent(chat)["messages"]
        url = {"url": "data:image/png;base64,iVBORw0KGgo="}
        assert user["content"] == [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": url}]
        assert assistant["content"] == "ok"
        assert [(call["id"], call["function"]) for call in assistant["tool_calls"]] == [
            ("a", {"name": "ls", "arguments": '{"p": "ü"}'}),
            ("b", {"name": "pwd", "arguments": "{}"}),
        ]
        assert first == {"role": "tool", "content": "x", "tool_call_id": "a"}
        assert second == {"role": "tool", "tool_call_id": "b", "content": '{"y": 1}'}

    async def test_a_server_that_knows_the_limit_by_its_older_name_is_asked_by_that_from_then_on(self, chat, provider):
        refused = failure(422, "Extra inputs are not permitted: max_completion_tokens")
        chat.side_effect = [refused, answer("hi"), answer("hi")]
        limited = HELLO.model_copy(update={"max_output_tokens": 50})

        await provider.complete(limited)
        await provider.complete(limited)

        assert [body.get("max_tokens") for body in (sent(chat, at) for at in range(3))] == [None, 50, 50]
        assert "max_completion_tokens" not in sent(chat)

    async def test_a_server_that_refuses_both_names_is_not_asked_for_ever(self, chat, provider):
        chat.side_effect = lambda request: failure(400, "max_completion_tokens and max_tokens are unknown")

        for _ in range(2):
            with pytest.raises(InvalidRequestError):
                await provider.complete(HELLO.model_copy(update={"max_output_tokens": 50}))

        assert len(chat.calls) == 3

    async def test_without_a_key_none_is_sent(self, chat):
        chat.side_effect = [answer("hi")]
        provider = OpenAICompatibleProvider(BASE_URL, "chat-1", context_window=8_000)

        await provider.complete(HELLO)
        await provider.close()

        assert "Authorization" not in chat.calls[0].request.headers


class TestAnswers:
    async def test_usage_is_read_with_what_came_from_the_cache_and_what_was_reasoning(self, chat, provider):
        usage = {
            "prompt_tokens": 900,
            "completion_tokens": 50,
            "total_tokens": 950,
            "prompt_tokens_details": {"cached_tokens": 640},
            "completion_tokens_details": {"reasoning_tokens": 20},
        }
        body = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage}
        chat.side_effect = [httpx.Response(200, json=body)]

        response = await provider.complete(HELLO)

        used = response.usage
        assert (used.input_tokens, used.output_tokens, used.total_tokens) == (900, 50, 950)
        assert (used.cache_read_tokens, used.reasoning_tokens, used.cost_usd) == (640, 20, None)

    @pytest.mark.parametrize("usage", [None, [], {}])
    async def test_an_answer_without_usage_is_an_answer(self, chat, provider, usage):
        """Some local servers count nothing."""
        body = {"choices": [{"message": {"content": "hi"}}], "usage": usage}
        chat.side_effect = [httpx.Response(200, json=body)]

        response = await provider.complete(HELLO)

        assert response.content[0].text == "hi"
        assert response.usage is None or response.usage.total_tokens == 0

    async def test_content_in_parts_is_joined_and_its_thinking_left_out(self, chat, provider):
        parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        chat.side_effect = [httpx.Response(200, json={"choices": [{"message": {"content": parts}}]})]

        assert [block.text for block in (await provider.complete(HELLO)).content] == ["a\nb"]

    async def test_a_refusal_in_a_field_of_its_own_is_told_as_the_reason_to_stop(self, chat, provider):
        message = {"content": None, "refusal": "I will not."}
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}
        chat.side_effect = [httpx.Response(200, json=body)]

        response = await provider.complete(HELLO)

        assert (response.finish_reason, response.content[0].text) == ("refusal", "I will not.")

    @pytest.mark.parametrize("arguments", ["{not json", "[1]", '"text"'])
    async def test_a_call_whose_arguments_are_no_object_names_the_tool(self, chat, provider, arguments):
        call = {"id": "a", "function": {"name": "lookup", "arguments": arguments}}
        chat.side_effect = [httpx.Response(200, json={"choices": [{"message": {"tool_calls": [call]}}]})]

        with pytest.raises(InvalidToolCallError, match="'lookup'") as caught:
            await provider.complete(HELLO)

        assert (caught.value.tool_name, caught.value.raw_arguments) == ("lookup", arguments)

    @pytest.mark.parametrize(
        "body",
        [
            [],
            "text",
            {"choices": None},
            {"choices": [{"message": None}]},
            {"choices": [{"message": {"tool_calls": [1]}}]},
        ],
    )
    async def test_an_answer_of_another_shape_is_an_error_that_is_not_retried(self, chat, provider, body):
        chat.side_effect = [httpx.Response(200, json=body)]

        with pytest.raises(LLMError, match="an answer that") as caught:
            await provider.complete(HELLO)

        assert type(caught.value) is LLMError
        assert not caught.value.retryable


class TestErrors:
    @pytest.mark.parametrize(
        ("response", "kind", "retryable"),
        [
            (failure(429, "quota", "insufficient_quota"), QuotaExceededError, False),
            (failure(402, "pay first"), QuotaExceededError, False),
            (failure(429, "slow down", "rate_limit_exceeded"), RateLimitError, True),
            (failure(403, "not yours"), AccessDeniedError, False),
            (failure(401, "who are you"), AuthenticationError, False),
            (failure(404, "no such model", "model_not_found"), NotFoundError, False),
            (failure(400, "blocked", "content_filter"), ContentFilterError, False),
            (failure(400, "long", "context_length_exceeded"), ContextLengthError, False),
            (failure(408, "took long"), LLMTimeoutError, True),
            (failure(422, "what?"), InvalidRequestError, False),
            (failure(504, "behind"), ProviderUnavailableError, True),
            (httpx.Response(400, json={"error": "just text"}), InvalidRequestError, False),
            (httpx.Response(400, json={"error": {"type": "exceed_context_size_error"}}), ContextLengthError, False),
            (httpx.Response(400, json={"error": {"code": [1], "message": {"a": 1}}}), InvalidRequestError, False),
            (httpx.Response(200, json={"error": {"code": 429, "message": "upstream"}}), RateLimitError, True),
            (httpx.Response(200, json={"error": {"message": "upstream"}}), ProviderUnavailableError, True),
            (httpx.Response(301, headers={"Location": "https://x.example/"}), ConfigurationError, False),
            (httpx.ConnectTimeout("late"), LLMTimeoutError, True),
            (httpx.ReadError("cut"), NetworkError, True),
            (httpx.DecodingError("gzip"), LLMError, False),
        ],
        ids=str,
    )
    async def test_what_goes_wrong_is_an_error_of_the_hosts_taxonomy(self, chat, provider, response, kind, retryable):
        chat.side_effect = [response]

        with pytest.raises(kind) as caught:
            await provider.complete(HELLO)

        assert type(caught.value) is kind
        assert caught.value.retryable is retryable
        assert (caught.value.provider, caught.value.model) == ("openai-compatible", "chat-1")
        assert len(chat.calls) == 1, "retries are the caller's business"

    @pytest.mark.parametrize(
        ("given", "seconds"),
        [
            ("7", 7.0),
            ("1.5", 1.5),
            ("soon", None),
            ("", None),
            (formatdate(0, usegmt=True), 0.0),
            ("9" * 400, 86_400.0),
        ],
    )
    async def test_the_wait_that_a_server_asks_for_is_read_as_seconds(self, chat, provider, given, seconds):
        chat.side_effect = [httpx.Response(429, headers={"Retry-After": given})]

        with pytest.raises(RateLimitError) as caught:
            await provider.complete(HELLO)

        assert caught.value.retry_after == seconds

    async def test_the_key_is_in_no_error_even_where_the_server_repeats_it(self, chat, provider):
        chat.side_effect = [failure(401, f"incorrect key: {KEY}")]

        with pytest.raises(AuthenticationError) as caught:
            await provider.complete(HELLO)

        assert str(caught.value) == "HTTP 401: incorrect key: [key]"

    async def test_a_refusal_says_so_when_no_key_was_sent(self, chat):
        chat.side_effect = [failure(401, "who are you")]
        provider = OpenAICompatibleProvider(BASE_URL, "chat-1")

        with pytest.raises(AuthenticationError, match="no key was sent"):
            await provider.complete(HELLO)
        await provider.close()


class TestWindow:
    @pytest.mark.parametrize("field", ["max_model_len", "context_window", "context_length"])
    async def test_where_none_was_given_the_server_is_asked_for_it_once(self, server, field):
        listed = {"data": [{"id": "other", field: 1_000}, {"id": "chat-1", field: 32_000}]}
        models = server.get("/models").mock(return_value=httpx.Response(200, json=listed))
        provider = OpenAICompatibleProvider(BASE_URL, "chat-1")

        windows = [await provider_window(provider) for _ in range(3)]
        await provider.close()

        assert {(window.context, window.output) for window in windows if window} == {(32_000, 8_000)}
        assert len(models.calls) == 1
        assert provider.get_info().defaults["context_window"] == 32_000

    @pytest.mark.parametrize(
        "response",
        [
            httpx.Response(200, json={"data": [{"id": "chat-1"}, {"id": 5}, 7]}),
            httpx.Response(200, json={"data": [{"id": "chat-1", "max_model_len": True}]}),
            httpx.Response(200, json={"models": []}),
            httpx.Response(404),
            httpx.Response(200, text="<html>"),
        ],
    )
    async def test_a_server_that_does_not_tell_leaves_the_common_one(self, server, response):
        models = server.get("/models").mock(return_value=response)
        provider = OpenAICompatibleProvider(BASE_URL, "chat-1")

        info = [await provider.get_model_info() for _ in range(2)][-1]
        await provider.close()

        assert (info.context_window, info.max_output_tokens) == (CONTEXT_WINDOW, 8_192)
        assert len(models.calls) == 1

    async def test_one_that_was_given_is_used_and_nobody_is_asked(self, server):
        models = server.get("/models")
        provider = OpenAICompatibleProvider(BASE_URL, "chat-1", context_window=16_000, max_output_tokens=500)

        info = await provider.get_model_info()

        assert (info.context_window, info.max_output_tokens) == (16_000, 500)
        assert provider.get_info().defaults == {
            "model": "chat-1", "context_window": 16_000, "max_output_tokens": 500
        }  # fmt: skip
        assert not models.called


class TestMaking:
    @staticmethod
    async def authorization(base_url: str, key_env: str | None = None) -> str | None:
        """The header with which a provider that was made so asks its server."""
        with respx.mock(base_url=base_url) as router:
            models = router.get("/models").respond(json={"data": []})
            made = make_provider(base_url, "m", key_env=key_env)
            await made.list_models()
            await made.close()
        found: str | None = models.calls[0].request.headers.get("Authorization")
        return found

    async def test_the_usual_key_goes_to_https_alone(self, monkeypatch):
        """A server on this machine or in this house is none of OpenAI's."""
        monkeypatch.setenv("OPENAI_API_KEY", KEY)

        assert await self.authorization("https://api.example.com/v1") == f"Bearer {KEY}"
        assert await self.authorization("http://127.0.0.1:8000/v1") is None
        assert await self.authorization("http://127.0.0.1:8000/v1", key_env="OPENAI_API_KEY") == f"Bearer {KEY}"

    async def test_without_a_key_in_the_environment_none_is_used(self, monkeypatch):
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)

        assert await self.authorization("https://api.example.com/v1") is None

    def test_a_variable_that_was_named_has_to_be_set(self, monkeypatch):
        monkeypatch.setenv("MY_KEY", " ")

        with pytest.raises(ConfigError, match="MY_KEY is not set"):
            make_provider("https://api.example.com/v1", "m", key_env="MY_KEY")

    @pytest.mark.parametrize(
        "base_url", ["", "api.example.com/v1", "ftp://x/v1", "http://", "https:///v1", "localhost:80"]
    )
    def test_an_address_that_is_none_is_refused(self, base_url):
        with pytest.raises(ConfigError, match="base_url must be an http or https address"):
            make_provider(base_url, "m")

    def test_without_httpx_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "httpx", None)

        with pytest.raises(ConfigError, match=r"needs httpx.*pip install .httpx>="):
            make_provider("http://127.0.0.1:8000/v1", "m")

    def test_without_httpx_the_module_can_be_imported(self):
        """Everything else works without the extra."""
        code = "import sys; sys.modules['httpx'] = None; import context_summarize.providers.openai_compatible"

        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    @pytest.mark.parametrize(("host", "asked"), [("localhost", 0), ("127.0.0.1", 0), ("server.example", 1)])
    async def test_the_proxy_of_the_environment_is_not_asked_for_this_machine(self, monkeypatch, host, asked):
        heard: list[bytes] = []

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.readline())
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
            port = proxy.sockets[0].getsockname()[1]
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            made = OpenAICompatibleProvider(f"http://{host}:1/v1", "m")
            with pytest.raises(LLMError):
                await made.list_models()
            await made.close()

        assert heard == [f"GET http://{host}:1/v1/models HTTP/1.1\r\n".encode()] * asked

    def test_it_is_what_hosts_take_for_a_provider(self):
        provider = make_provider("http://127.0.0.1:8000/v1", "m", context_window=8_000)

        assert provider.name == "openai-compatible"
        assert provider.get_info().id == "openai-compatible"
        assert all(callable(getattr(provider, name)) for name in ("complete", "list_models", "parse_tool_calls"))


# --- a server process -----------------------------------------------------------------------------------------------


@pytest.fixture
def local_server() -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, str(Path(chat_server.__file__))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.kill()


async def test_a_boundary_is_made_with_a_real_server_on_this_machine(local_server, monkeypatch, no_hang):
    """Window, limit and patience are found out from the server; the summary comes over a real connection."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    provider = make_provider(local_server, chat_server.MODEL, max_output_tokens=2_000)
    manager = SummarizingContextManager(
        keep_recent=6,
        segment_tokens=2_000,
        summary_tokens=200,
        elide_tool_results=None,
        safety_margin=0,
        compact_threshold=0.6,
        prefetch_threshold=None,
    )
    rows = tool_session(9, size=2_400)
    for row in rows:
        await manager.add_message(row)

    view = await manager.get_messages_for_request(provider=provider)
    again = await manager.get_messages_for_request(provider=provider)
    await manager.close()
    await provider.close()

    async with httpx.AsyncClient(trust_env=False) as client:
        log = (await client.get(f"{local_server.removesuffix('/v1')}/log")).json()
    assert again == view
    assert len(view) < len(rows)
    assert chat_server.SUMMARY in view[1]["content"]
    assert view[-6:] == rows[-6:]
    assert broken_pairs(view) == []
    assert [entry["path"] for entry in log] == ["/v1/models", *["/v1/chat/completions"] * 3]
    assert {entry["key"] for entry in log} == {None}
    refused, busy, answered = (entry["body"] for entry in log[1:])
    assert "max_completion_tokens" in refused
    assert busy == answered
    assert answered["max_tokens"] == refused["max_completion_tokens"]
    assert "ORD00000" in answered["messages"][1]["content"]
