"""An Amplifier provider over the Chat Completions protocol, on httpx: small, and true in its errors."""

from __future__ import annotations

import json
from typing import Any

import httpx
from amplifier_core.llm_errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    RateLimitError,
)
from amplifier_core.message_models import ChatRequest, ChatResponse, Message, TextBlock, ToolCall, ToolCallBlock, Usage
from amplifier_core.models import ProviderInfo

BASE_URL = "http://127.0.0.1:9/v1"
"""Loopback, and a port where nobody listens: a request that is not mocked fails and goes nowhere."""


class ChatCompletionsProvider:
    """Asks `POST {base_url}/chat/completions`; one request per `complete()`, retries are the caller's business."""

    name = "chat"

    def __init__(
        self,
        *,
        base_url: str = BASE_URL,
        model: str = "chat-1",
        api_key: str = "not-a-key",
        context_window: int = 8_000,
        max_output_tokens: int = 1_000,
    ) -> None:
        self.model = model
        self._window = {"context_window": context_window, "max_output_tokens": max_output_tokens}
        # Without the environment's proxies, which would take requests to loopback elsewhere.
        self._client = httpx.AsyncClient(
            base_url=base_url, headers={"Authorization": f"Bearer {api_key}"}, trust_env=False
        )

    def get_info(self) -> ProviderInfo:
        """The window, as hosts read it."""
        return ProviderInfo(id=self.name, display_name="Chat Completions", defaults=dict(self._window))

    async def list_models(self) -> list[Any]:
        """No models."""
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        """What the response holds."""
        return response.tool_calls or []

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        """One answer.

        Raises:
            LLMError: of the kind that the host's taxonomy has for what went wrong.
        """
        model = kwargs.get("model") or request.model or self.model
        payload: dict[str, Any] = {"model": model, "messages": [_row(message) for message in request.messages]}
        if request.max_output_tokens is not None:
            payload["max_completion_tokens"] = request.max_output_tokens
        try:
            response = await self._client.post("chat/completions", json=payload)
        except httpx.TimeoutException as error:
            raise LLMTimeoutError(f"no answer in time: {error}", provider=self.name, model=model) from error
        except httpx.TransportError as error:
            raise NetworkError(f"no connection: {error}", provider=self.name, model=model) from error
        if response.is_error:
            raise _error(response, provider=self.name, model=model)
        try:
            return _chat_response(response.json())
        except (json.JSONDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise LLMError(f"an answer that cannot be read: {error!r}", provider=self.name, model=model) from error


def _row(message: Message) -> dict[str, Any]:
    """A message as the protocol has it: text as one string, calls and results in fields of their own."""
    blocks = message.content if isinstance(message.content, list) else [TextBlock(text=message.content)]
    row: dict[str, Any] = {
        "role": message.role,
        "content": "\n".join(block.text for block in blocks if isinstance(block, TextBlock)),
    }
    calls = [
        {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": json.dumps(block.input)}}
        for block in blocks
        if isinstance(block, ToolCallBlock)
    ]
    if calls:
        row["tool_calls"] = calls
    if message.tool_call_id is not None:
        row["tool_call_id"] = message.tool_call_id
    return row


def _chat_response(body: Any) -> ChatResponse:
    choice = body["choices"][0]
    said, used = choice["message"], body["usage"]
    calls = [
        ToolCall(
            id=call["id"], name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"] or "{}")
        )
        for call in said.get("tool_calls") or ()
    ]
    content: list[Any] = [TextBlock(text=said["content"])] if said.get("content") else []
    content += [ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in calls]
    return ChatResponse(
        content=content,
        tool_calls=calls or None,
        usage=Usage(
            input_tokens=used["prompt_tokens"],
            output_tokens=used["completion_tokens"],
            total_tokens=used["prompt_tokens"] + used["completion_tokens"],
        ),
        finish_reason=choice.get("finish_reason"),
        metadata={"model": body["model"]} if body.get("model") else None,
    )


def _error(response: httpx.Response, **where: Any) -> LLMError:
    """The host's error for an HTTP status; code and text are read from the body where there are any."""
    status = response.status_code
    try:
        told = response.json()["error"]
        code, text = told.get("code"), str(told.get("message"))
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        code, text = None, response.text
    where |= {"status_code": status}
    message = f"HTTP {status}: {text}"[:500]
    if status == 429:
        after = response.headers.get("Retry-After", "")
        return RateLimitError(message, retry_after=float(after) if after.isdigit() else None, **where)
    if status >= 500:
        return ProviderUnavailableError(message, **where)
    if status in (401, 403):
        return AuthenticationError(message, **where)
    if status == 404:
        return NotFoundError(message, **where)
    if status == 413 or code == "context_length_exceeded":
        return ContextLengthError(message, **where)
    return InvalidRequestError(message, **where)


# --- answers, for respx ---------------------------------------------------------------------------------------------


def answer(text: str, *, finish_reason: str = "stop", model: str = "chat-1-2026", cost: int = 50) -> httpx.Response:
    """A good answer; `cost` tokens were written, 900 read."""
    return httpx.Response(
        200,
        json={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": model,
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": cost, "total_tokens": 900 + cost},
        },
    )


def failure(status: int, message: str, code: str | None = None, **headers: str) -> httpx.Response:
    """An error, as servers of this protocol send it; `Retry_After="7"` becomes the header of that name."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
