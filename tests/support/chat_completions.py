"""Answers of a Chat Completions server, for respx."""

from __future__ import annotations

import httpx

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
