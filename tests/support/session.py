"""A small Amplifier host for tests: modules that the loader finds by name, an agent loop, a tool, and a provider."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from amplifier_core import AmplifierSession, HookResult, ToolResult
from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS
from amplifier_core.llm_errors import ContextLengthError, InvalidRequestError, LLMError, ProviderUnavailableError
from amplifier_core.message_models import (
    ChatRequest,
    ChatResponse,
    Message,
    TextBlock,
    ToolCall,
    ToolCallBlock,
    ToolSpec,
)
from amplifier_core.testing import MockTool

from context_summarize.events import ALL_EVENTS
from context_summarize.testing import JsonRow, ScriptedProvider, broken_pairs, text_response
from tests.support.gated import answer

SMALL: dict[str, Any] = {"safety_margin": 500, "segment_tokens": 512, "keep_recent": 6, "shorten_tool_results": None}
"""With the provider's window of 6,000 and output of 500 tokens: a budget of 5,000."""


def is_summary_request(request: ChatRequest) -> bool:
    """True for a request that the context module has made."""
    return (request.metadata or {}).get("purpose") == "context-summarize"


def tokens_of(request: ChatRequest) -> int:
    """Tokens of a request as the provider of these tests counts: four characters each."""
    return sum(len(str(message.content)) for message in request.messages) // 4


class LookupTool(MockTool):
    """A tool whose results are long enough to fill a small window."""

    async def _execute(self, input: dict[str, Any]) -> ToolResult:
        self.call_count += 1
        order = input["order"]
        history = "; ".join(f"{order} stop {stop} weight {stop * 7 % 31} kg" for stop in range(30))
        return ToolResult(success=True, output={"order": order, "history": history})


class Loop:
    """An agent loop as loop-basic has it: ask, run the tools, ask again, until the answer has no calls.

    It keeps every row that it added, and what is wrong with the views that it was given. Before each request it waits
    for what is made ahead of need, as long as a model takes for its answers: so no machine is too slow for that.
    """

    def __init__(self) -> None:
        self.is_patient = True
        """False where summaries hang, and with them what is made ahead."""
        self.request: Any = lambda context, provider: context.get_messages_for_request(provider=provider)
        """How it asks the context for the rows of a request; tests put what newer loops do in its place."""
        self.marks: JsonRow = {}
        """Metadata of the assistant rows from now on."""
        self.added: list[JsonRow] = []
        self.views: list[list[JsonRow]] = []
        self.problems: list[str] = []

    async def execute(self, prompt, context, providers, tools, hooks, **_: Any) -> str:
        provider = next(iter(providers.values()))
        specs = [ToolSpec(name=t.name, description=t.description, parameters=t.input_schema) for t in tools.values()]
        await self._add(context, {"role": "user", "content": prompt})
        while True:
            if self.is_patient:
                await context.settle()
            rows = await self.request(context, provider)
            self.views.append(rows)
            self.problems += broken_pairs(rows)
            try:
                response = await provider.complete(ChatRequest(messages=[Message(**row) for row in rows], tools=specs))
            except LLMError as error:  # as loop-basic 937a53f and loop-streaming e5438b4 tell of their own calls
                told = {"type": type(error).__name__, "msg": str(error)}
                await hooks.emit("provider:error", {"provider": provider.name, "error": told})
                raise
            blocks = [block.model_dump() for block in response.content]
            if not response.tool_calls:
                await self._add(context, {"role": "assistant", "content": blocks})
                return str(response.content[0].text)
            made = [{"id": call.id, "tool": call.name, "arguments": call.arguments} for call in response.tool_calls]
            await self._add(context, {"role": "assistant", "content": blocks, "tool_calls": made})
            for call in response.tool_calls:
                result = await tools[call.name].execute(call.arguments)
                await self._add(context, {"role": "tool", "tool_call_id": call.id, "content": str(result.output)})

    async def _add(self, context: Any, row: JsonRow) -> None:
        if self.marks and row["role"] == "assistant":
            row = {**row, "metadata": dict(self.marks)}
        self.added.append(row)
        await context.add_message(row)


class SessionProvider(ScriptedProvider):
    """Answers a user row with a call of `lookup` and its result with text; `summary` answers requests for summaries.

    After each answer it says so as `llm:response`, the way Amplifier's providers do, with the tokens that
    `input_tokens` makes of the request. A request of more than `most` tokens is refused, at four characters each; a
    mute provider names but the type of its client's error there, as provider-chat-completions 6d38c21 does.
    """

    def __init__(
        self,
        hooks: Any,
        *,
        summary: Callable[[ChatRequest], Any] = answer,
        input_tokens: Callable[[ChatRequest], int] | None = None,
        context_window: int = 6_000,
        most: int | None = None,
        is_mute: bool = False,
    ) -> None:
        super().__init__(then=self._reply, context_window=context_window, max_output_tokens=500)
        self._hooks, self._summary, self._input_tokens = hooks, summary, input_tokens
        self._most, self._is_mute = most, is_mute
        self.refused: list[int] = []
        """Tokens of the requests that were too long."""
        self.is_closed = False
        """True once the session has cleaned it up: calls under way fail then."""

    @property
    def summary_requests(self) -> list[ChatRequest]:
        """The requests of the context module."""
        return [request for request in self.requests if is_summary_request(request)]

    def _reply(self, request: ChatRequest) -> Any:
        tokens = tokens_of(request)
        if self._most is not None and tokens > self._most:
            self.refused.append(tokens)
            kind = ContextLengthError if self._is_mute else InvalidRequestError
            raise kind("Your input exceeds the context window of this model. Please adjust your input.")
        if is_summary_request(request):
            return self._summary(request)
        last = next(row for row in reversed(request.messages) if not str(row.content).startswith("<system-reminder"))
        if last.role == "tool":
            return f"The order of call {last.tool_call_id} was found."
        number = self.calls - len(self.summary_requests)  # however many summaries are made meanwhile
        made: Any = {"id": f"call_{number}", "name": "lookup"}
        arguments = {"order": f"ORD{number:05d}"}
        return ChatResponse(
            content=[TextBlock(text="Let me look."), ToolCallBlock(**made, input=arguments)],
            tool_calls=[ToolCall(**made, arguments=arguments)],
            usage=text_response("", request).usage,
            finish_reason="tool_calls",
        )

    async def complete(self, request: ChatRequest, **options: Any) -> Any:
        event: dict[str, Any] = {"provider": self.name, "model": options.get("model", "scripted-1"), "duration_ms": 1}
        try:
            response: Any = await super().complete(request, **options)
            if self.is_closed:
                raise ProviderUnavailableError("the client has been closed")
        except Exception as error:
            why = {"error_type": "BadRequestError"} if self._is_mute else {"error": str(error)}
            await self._hooks.emit("llm:response", {**event, "status": "error", **why})
            raise
        read = self._input_tokens(request) if self._input_tokens else response.usage.input_tokens
        told = {"input_tokens": read, "output_tokens": response.usage.output_tokens, "cost_usd": None}
        await self._hooks.emit("llm:response", {**event, "status": "ok", "usage": told})
        return response


class Host:
    """A session with the parts above, and the events that it has seen.

    `await host.start()` builds and initializes it, `await host.end()` cleans it up.

    Args:
        tools: modules of further tools.
        capabilities: what another module registers.
        provider: options of its provider.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        settings: dict[str, Any] | None = None,
        *,
        tools: tuple[str, ...] = (),
        capabilities: dict[str, Any] | None = None,
        approval: Any = None,
        **provider: Any,
    ) -> None:
        self._approval, self._capabilities, self._provider_options = approval, capabilities or {}, provider
        self.loop, self.tool = Loop(), LookupTool("lookup")
        self.events: list[tuple[str, dict[str, Any]]] = []
        context = {"module": "context-summarize", "config": settings or {}}
        self._config: dict[str, Any] = {
            "session": {"orchestrator": {"module": "loop"}, "context": context},
            "providers": [{"module": "provider"}],
            "tools": [{"module": name} for name in tools],
        }
        self.provider: SessionProvider
        self.session: Any
        # Amplifier's loader imports these where a module has no source.
        for name, mount in {"loop": self._mount_loop, "provider": self._mount_provider}.items():
            monkeypatch.setitem(sys.modules, f"amplifier_module_{name}", types.SimpleNamespace(mount=mount))

    async def _mount_loop(self, coordinator: Any, config: Any) -> None:
        await coordinator.mount("orchestrator", self.loop)

    async def _mount_provider(self, coordinator: Any, config: Any) -> Any:
        self.provider = SessionProvider(coordinator.hooks, **self._provider_options)
        await coordinator.mount("providers", self.provider, name=self.provider.name)

        async def close() -> None:
            self.provider.is_closed = True

        return close

    async def start(self) -> Host:
        self.session = AmplifierSession(self._config, approval_system=self._approval)
        coordinator = self.session.coordinator
        await coordinator.mount("tools", self.tool, name=self.tool.name)
        for name, capability in self._capabilities.items():
            coordinator.register_capability(name, capability)
        await self.session.initialize()
        for name in {*ALL_EVENTS, *KERNEL_EVENTS}:
            coordinator.hooks.register(name, self._record, name=f"record-{name}")
        return self

    async def _record(self, event: str, data: dict[str, Any]) -> HookResult:
        self.events.append((event, dict(data)))
        return HookResult(action="continue")

    @property
    def context(self) -> Any:
        """The mounted context manager."""
        return self.session.coordinator.get("context")

    def seen(self, name: str) -> list[dict[str, Any]]:
        """Payloads of one event, in order."""
        return [data for event, data in self.events if event == name]

    async def talk(self, turns: int) -> None:
        """So many prompts, one after the other."""
        for turn in range(turns):
            await self.session.execute(f"Please find order number {turn} and tell me its state.")

    async def end(self) -> None:
        await self.session.cleanup()
