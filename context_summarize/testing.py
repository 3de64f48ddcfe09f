"""Helpers for tests, ours and users': a provider that answers from a script, and functions that check views."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, Usage
from amplifier_core.models import ProviderInfo

from context_summarize.messages.reading import broken_pairs
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.stores import MemoryStore
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure as measure_with

__all__ = [
    "FALLBACK_LINE",
    "Answer",
    "JsonRow",
    "MemoryStore",
    "Said",
    "ScriptedProvider",
    "broken_pairs",
    "measure",
    "text_response",
]

Said = str | ChatResponse
Answer = Said | Exception | Callable[[ChatRequest], Said | Awaitable[Said]]


class ScriptedProvider:
    """An Amplifier provider that answers from a script and records every request.

    Example: `ScriptedProvider(["summary one", RateLimitError("slow down"), "two"])`. A text becomes the answer, an
    exception is raised, a `ChatResponse` is returned, and a function is called with the request. After the last item,
    `then` answers every further request.

    Args:
        script: answers, in the order of the calls.
        then: the answer after the end of the script.
        context_window, max_output_tokens: tokens, as in `get_info().defaults`.
        gate: an event that every call waits for before it answers.
    """

    def __init__(
        self,
        script: Iterable[Answer] = (),
        *,
        then: Answer = "Goal: the user asked for something, and it was done.",
        name: str = "scripted",
        context_window: int = 40_000,
        max_output_tokens: int = 4_000,
        gate: asyncio.Event | None = None,
    ) -> None:
        self.name = name
        self.requests: list[ChatRequest] = []
        """Every request, in order."""
        self.options: list[dict[str, Any]] = []
        """The keyword arguments of every call."""
        self.cancelled = 0
        """Calls that were cancelled while they waited for the gate."""
        self.context_window = context_window
        self.max_output_tokens = max_output_tokens
        if isinstance(script, str | Exception) or not isinstance(script, Iterable):
            raise TypeError(f"script must be a list of answers, got {type(script).__name__}; use then=… for one answer")
        self._script = list(script)
        self._then = then
        self._gate = gate

    @property
    def calls(self) -> int:
        """Number of requests so far."""
        return len(self.requests)

    def get_info(self) -> ProviderInfo:
        """Returns the window, in the host's format."""
        defaults = {"context_window": self.context_window, "max_output_tokens": self.max_output_tokens}
        return ProviderInfo(id=self.name, display_name="Scripted", defaults=defaults)

    async def list_models(self) -> list[Any]:
        """Returns no models."""
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[Any]:
        """Returns the tool calls of the response."""
        return response.tool_calls or []

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        """Returns the next answer of the script."""
        self.requests.append(request)
        self.options.append(kwargs)
        answer = self._script.pop(0) if self._script else self._then
        try:
            await (self._gate.wait() if self._gate else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        said = answer(request) if callable(answer) else answer
        if inspect.isawaitable(said):
            said = await said
        return text_response(said, request) if isinstance(said, str) else said


def text_response(text: str, request: ChatRequest | None = None) -> ChatResponse:
    """Returns a plain answer, with usage estimated at four characters per token."""
    read = sum(len(str(message.content)) for message in request.messages) // 4 if request else 0
    wrote = max(1, len(text) // 4)
    usage = Usage(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote)
    return ChatResponse(content=[TextBlock(text=text)], usage=usage, finish_reason="stop")


def measure(row: JsonRow) -> int:
    """Returns the tokens of one row, as a manager estimates them before a provider's own counts correct it."""
    return measure_with(row, TokenCounter().count)
