"""Chat Completions for tests: the product's provider at an address where nobody listens, and a server's answers."""

from __future__ import annotations

import httpx

from context_summarize.providers.openai_compatible import OpenAICompatibleProvider

BASE_URL = "http://127.0.0.1:9/v1"
"""Loopback, and a port where nobody listens: a request that is not mocked fails and goes nowhere."""


class ChatCompletionsProvider(OpenAICompatibleProvider):
    """The provider with a window of its own, so that it asks the server for none."""

    def __init__(self, *, context_window: int = 8_000, max_output_tokens: int = 1_000) -> None:
        super().__init__(
            BASE_URL,
            "chat-1",
            api_key="not-a-key",
            context_window=context_window,
            max_output_tokens=max_output_tokens,
            name="chat",
        )


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
