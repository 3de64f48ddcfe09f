"""For tests, ours and users': a scripted provider, builders of histories, checks of views, a store in memory."""

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
    "assistant",
    "broken_pairs",
    "call",
    "calls",
    "hook",
    "measure",
    "result",
    "text_response",
    "tool_session",
    "user",
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
        """The window, in the host's format."""
        defaults = {"context_window": self.context_window, "max_output_tokens": self.max_output_tokens}
        return ProviderInfo(id=self.name, display_name="Scripted", defaults=defaults)

    async def list_models(self) -> list[Any]:
        """No models."""
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[Any]:
        """The tool calls of the response."""
        return response.tool_calls or []

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        """The next answer of the script."""
        self.requests.append(request)
        self.options.append(kwargs)
        answer = self._script.pop(0) if self._script else self._then
        try:
            if self._gate is not None:
                await self._gate.wait()
            else:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            made = answer(request)
            said = await made if inspect.isawaitable(made) else made
        else:
            said = answer
        return text_response(said, request) if isinstance(said, str) else said


def text_response(text: str, request: ChatRequest | None = None) -> ChatResponse:
    """A plain answer, with usage estimated at four characters per token."""
    read = sum(len(str(message.content)) for message in request.messages) // 4 if request else 0
    wrote = max(1, len(text) // 4)
    usage = Usage(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote)
    return ChatResponse(content=[TextBlock(text=text)], usage=usage, finish_reason="stop")


def measure(row: JsonRow) -> int:
    """Tokens of one row, as a manager estimates them before a provider's own counts correct it."""
    return measure_with(row, TokenCounter().count)


def user(text: Any) -> JsonRow:
    """A user row."""
    return {"role": "user", "content": text}


def assistant(text: Any) -> JsonRow:
    """An assistant row without calls."""
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str = "bash", text: str = "", **arguments: Any) -> JsonRow:
    """An assistant row with one call, as Amplifier's loops store it: as a block and in `tool_calls`."""
    return calls((call_id, name, arguments), text=text)


def calls(*made: tuple[str, str, dict[str, Any]], text: str = "") -> JsonRow:
    """An assistant row with several parallel calls (id, name, arguments)."""
    said = [{"type": "text", "text": text}] if text else []
    blocks = [{"type": "tool_call", "id": i, "name": n, "input": dict(a)} for i, n, a in made]
    entries = [{"id": i, "tool": n, "arguments": dict(a)} for i, n, a in made]
    return {"role": "assistant", "content": [*said, *blocks], "tool_calls": entries}


def result(call_id: str, text: Any = "ok", name: str = "bash") -> JsonRow:
    """A tool row."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


def hook(text: str, role: str = "system") -> JsonRow:
    """A row that a hook has added."""
    return {"role": role, "content": text, "metadata": {"source": "hook", "hook_name": "test", "ephemeral": False}}


def tool_session(turns: int, *, size: int = 400, start: int = 0) -> list[JsonRow]:
    """A session of turns with unique ids: a request, a call, its result (about `size` characters) and an answer."""
    rows: list[JsonRow] = []
    for turn in range(start, start + turns):
        body = f"value-{turn}-A{turn:04d}B " * max(1, size // 16)
        rows += [
            user(f"Please look up order ORD{turn:05d} and tell me its state."),
            call(f"call_{turn}", "lookup", order=f"ORD{turn:05d}"),
            result(f"call_{turn}", body, "lookup"),
            assistant(f"Order ORD{turn:05d} was found; its state is shipped-{turn}."),
        ]
    return rows
