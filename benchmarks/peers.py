"""Contestants of the benchmarks: this module and its peers behind one small interface, an adapter each.

Rows go in as Amplifier's loops store them and views come out as such rows, so that every contestant is measured by the
same code. Peers are imported when an adapter is made: none of them is a dependency of the project.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol
from unittest.mock import patch

from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.history import measure
from context_summarize.testing import ScriptedProvider

Row = dict[str, Any]
_yield = asyncio.sleep


class VirtualClock:
    """Seconds that pass without waiting; what a contestant sleeps is added up here."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Seconds since the start."""
        return self.seconds

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """Stands in for `asyncio.sleep`."""
        self.seconds += seconds
        await _yield(0)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What every contestant gets alike."""

    answer: Callable[[str], str]
    """The stand-in summariser: from the text that it is shown to its answer, or an exception."""
    count: Callable[[str], int]
    """Tokens of a text."""
    budget: int
    """Tokens that one request may hold."""
    trigger: float = 0.7
    """Share of the budget whose use makes a contestant summarise."""
    keep: int = 10
    """Newest rows that stay verbatim, where that can be set."""
    system: str = ""
    """The system prompt, for contestants that keep it outside the conversation."""
    mean_row: float = 100.0
    """Tokens of a row of the recording on average, for a contestant that counts rows only."""
    clock: VirtualClock = field(default_factory=VirtualClock)

    @property
    def trigger_tokens(self) -> int:
        """Tokens at which a contestant summarises, system prompt included."""
        return int(self.budget * self.trigger)

    def size(self, rows: Sequence[Row]) -> int:
        """Tokens of rows, counted the same way for all."""
        return sum(measure(row, self.count) for row in rows)


class Contestant(Protocol):
    """One context manager in the benchmark."""

    title: str
    packages: tuple[str, ...]
    """Distributions whose versions belong beside its figures."""
    frame: str
    """Text that it puts before every summary; what is left beside it is the summary."""

    def __init__(self, terms: Terms) -> None:
        """Raises ImportError where the peer is not installed."""

    async def add(self, row: Row) -> None:
        """Append one row to the conversation."""

    async def view(self) -> list[Row]:
        """The rows of the next request. What the peer would raise into its host is raised here."""

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        """Rows to the peer's own messages and back; equal to `rows` when nothing is lost."""

    async def close(self) -> None:
        """Let go of everything."""


# --- rows ---------------------------------------------------------------------------------------------------------


def text_of(row: Row) -> str:
    """The text of a row, without its calls."""
    content = row["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _calls(row: Row) -> list[Row]:
    return row.get("tool_calls") or []


def _row(role: str, text: str, calls: Sequence[tuple[str, str, Any]] = (), meta: Any = None) -> Row:
    """A row as Amplifier's loops store it: calls stand as blocks and in `tool_calls`."""
    row: Row = {"role": role, "content": text}
    if calls:
        said = [{"type": "text", "text": text}] if text else []
        row["content"] = [*said, *({"type": "tool_call", "id": i, "name": n, "input": a} for i, n, a in calls)]
        row["tool_calls"] = [{"id": i, "tool": n, "arguments": a} for i, n, a in calls]
    return row if meta is None else {**row, "metadata": meta}


def _result(call_id: str, name: str, text: str, meta: Any = None) -> Row:
    row = {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}
    return row if meta is None else {**row, "metadata": meta}


# --- this module --------------------------------------------------------------------------------------------------


class Ours:
    """This module with its defaults."""

    title = "context-summarize"
    packages: tuple[str, ...] = ("amplifier-module-context-summarize", "amplifier-core")
    frame = ""

    def __init__(self, terms: Terms) -> None:
        self._budget = terms.budget
        self._provider = ScriptedProvider(
            then=lambda request: terms.answer(_prompt(request)), context_window=terms.budget + 4_000
        )
        self._manager = SummarizingContextManager(clock=terms.clock.now, sleep=terms.clock.sleep)

    async def add(self, row: Row) -> None:
        await self._manager.add_message(row)

    async def view(self) -> list[Row]:
        return await self._manager.get_messages_for_request(self._budget, self._provider)

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    async def close(self) -> None:
        await self._manager.close()


def _prompt(request: ChatRequest) -> str:
    return "\n\n".join(text_of(message.model_dump()) for message in request.messages if message.role != "system")


# --- langchain ----------------------------------------------------------------------------------------------------


class LangChain:
    """`SummarizationMiddleware`, called as `create_agent` calls it before each model request.

    The agent's state holds no system prompt, so the trigger is lowered by its length.
    """

    title = "langchain SummarizationMiddleware"
    packages: tuple[str, ...] = ("langchain", "langchain-core", "langgraph")
    frame = "Here is a summary of the conversation to date:"

    def __init__(self, terms: Terms) -> None:
        self._lc = import_module("langchain_core.messages")
        self._add_messages = import_module("langgraph.graph.message").add_messages
        self._terms = terms
        self._system = [{"role": "system", "content": terms.system}] if terms.system else []
        self._middleware = import_module("langchain.agents.middleware").SummarizationMiddleware(
            model=_langchain_model(terms.answer),
            trigger=("tokens", terms.trigger_tokens - terms.size(self._system)),
            keep=("messages", terms.keep),
            token_counter=lambda messages: terms.size([self._back(message) for message in messages]),
        )
        self._runtime = import_module("langgraph.runtime").Runtime()
        self._messages: list[Any] = []

    async def add(self, row: Row) -> None:
        self._messages = self._add_messages(self._messages, [self._there(row)])

    async def view(self) -> list[Row]:
        # its retries sleep
        with patch.object(asyncio, "sleep", self._terms.clock.sleep):
            update = await self._middleware.abefore_model({"messages": self._messages}, self._runtime)
        if update is not None:
            self._messages = self._add_messages(self._messages, update["messages"])
        rows = [self._back(message) for message in self._messages]
        return rows if rows and rows[0]["role"] == "system" else [*self._system, *rows]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        return [self._back(self._there(row)) for row in rows]

    async def close(self) -> None:
        pass

    def _there(self, row: Row) -> Any:
        text, extra = text_of(row), {"metadata": row["metadata"]} if "metadata" in row else {}
        match row["role"]:
            case "system":
                return self._lc.SystemMessage(text, additional_kwargs=extra)
            case "user":
                return self._lc.HumanMessage(text, additional_kwargs=extra)
            case "tool":
                told = {"tool_call_id": row["tool_call_id"], "name": row["name"]}
                return self._lc.ToolMessage(text, additional_kwargs=extra, **told)
        calls = [{"id": call["id"], "name": call["tool"], "args": call["arguments"]} for call in _calls(row)]
        return self._lc.AIMessage(text, tool_calls=calls, additional_kwargs=extra)

    def _back(self, message: Any) -> Row:
        text, meta = message.text, message.additional_kwargs.get("metadata")
        match message.type:
            case "tool":
                return _result(message.tool_call_id, message.name, text, meta)
            case "ai":
                calls = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
                return _row("assistant", text, calls, meta)
        return _row({"human": "user"}.get(message.type, message.type), text, meta=meta)


def _langchain_model(answer: Callable[[str], str]) -> Any:
    messages, outputs = import_module("langchain_core.messages"), import_module("langchain_core.outputs")
    base: Any = import_module("langchain_core.language_models").BaseChatModel

    class Model(base):  # type: ignore[misc]
        @property
        def _llm_type(self) -> str:
            return "stand-in"

        def _generate(self, prompt: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            del stop, run_manager, kwargs
            said = messages.AIMessage(answer("\n\n".join(message.text for message in prompt)))
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=said)])

        async def _agenerate(self, prompt: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            return self._generate(prompt, stop, run_manager, **kwargs)

    return Model()


# --- strands ------------------------------------------------------------------------------------------------------


class Strands:
    """`SummarizingConversationManager` with proactive compression, in an agent whose loop is followed up to the model.

    Before a request the agent fires `BeforeModelCallEvent`; a model that refuses the request as too long makes it call
    `reduce_context` and try again, until it fits or raises. The agent's loop has no bound of its own: with a summary as
    long as its input it can end in `RecursionError`. Here the refusal reaches the host after `TRIES`, so that a run
    ends.
    """

    TRIES = 10

    title = "strands SummarizingConversationManager"
    packages: tuple[str, ...] = ("strands-agents",)
    frame = ""

    def __init__(self, terms: Terms) -> None:
        strands = import_module("strands")
        managers = import_module("strands.agent.conversation_manager")
        self._event = import_module("strands.hooks").BeforeModelCallEvent
        self._overflow = import_module("strands.types.exceptions").ContextWindowOverflowException
        self._terms = terms
        self._system = [{"role": "system", "content": terms.system}] if terms.system else []
        self._manager = managers.SummarizingConversationManager(
            preserve_recent_messages=terms.keep,
            proactive_compression={"compression_threshold": terms.trigger},
        )
        self._agent = strands.Agent(
            model=_strands_model(terms),
            conversation_manager=self._manager,
            system_prompt=terms.system or None,
            callback_handler=None,
        )

    async def add(self, row: Row) -> None:
        _strands_append(self._agent.messages, row)

    async def view(self) -> list[Row]:
        for _ in range(self.TRIES):
            event = self._event(agent=self._agent, projected_input_tokens=self._terms.size(self._rows()))
            await self._agent.hooks.invoke_callbacks_async(event)
            rows = self._rows()
            if self._terms.size(rows) <= self._terms.budget:
                return rows
            self._manager.reduce_context(self._agent, e=self._refused())
        raise self._refused()

    def _refused(self) -> Exception:
        refused: Exception = self._overflow("the request is longer than the context window")
        return refused

    def _rows(self) -> list[Row]:
        return [*self._system, *(row for message in self._agent.messages for row in _strands_rows(message))]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        messages: list[Row] = []
        for row in rows:
            _strands_append(messages, row)
        return [back for message in messages for back in _strands_rows(message)]

    async def close(self) -> None:
        pass


def _strands_append(messages: list[Any], row: Row) -> None:
    """Results of parallel calls share one user message; a system row, which strands has not, is a marked user's."""
    metas = [row.get("metadata")]
    if row["role"] == "tool":
        content: list[Row] = [
            {
                "toolResult": {
                    "toolUseId": row["tool_call_id"],
                    "status": "success",
                    "content": [{"text": row["content"]}],
                }
            }
        ]
        custom: dict[str, list[Any]] = {"rows": metas, "names": [row["name"]]}
        last = messages[-1] if messages else None
        if last and "names" in last.get("metadata", {}).get("custom", {}):
            last["content"] += content
            for key, value in custom.items():
                last["metadata"]["custom"][key] += value
            return
        messages.append({"role": "user", "content": content, "metadata": {"custom": custom}})
        return
    text = text_of(row)
    blocks: list[Row] = [{"text": text}] if text or not _calls(row) else []
    for call in _calls(row):
        blocks.append({"toolUse": {"toolUseId": call["id"], "name": call["tool"], "input": call["arguments"]}})
    role = "assistant" if row["role"] == "assistant" else "user"
    custom = {"rows": metas, "system": [True]} if row["role"] == "system" else {"rows": metas}
    messages.append({"role": role, "content": blocks, "metadata": {"custom": custom}})


def _strands_rows(message: Any) -> Iterator[Row]:
    custom = message.get("metadata", {}).get("custom", {})
    metas = custom.get("rows", [None])
    content = message["content"]
    if any("toolResult" in block for block in content):
        for block, meta, name in zip(content, metas, custom["names"], strict=True):
            told = block["toolResult"]
            yield _result(told["toolUseId"], name, "".join(part["text"] for part in told["content"]), meta)
        return
    text = "\n".join(block["text"] for block in content if "text" in block)
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    calls = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
    yield _row("system" if custom.get("system") else message["role"], text, calls, metas[0])


def _strands_model(terms: Terms) -> Any:
    base: Any = import_module("strands.models").Model

    class Model(base):  # type: ignore[misc]
        def get_config(self) -> Any:
            return {"context_window_limit": terms.budget}

        def update_config(self, **config: Any) -> None:
            pass

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: list[Any], *_: Any, **__: Any) -> AsyncIterator[Any]:
            text = terms.answer("\n\n".join(_strands_text(message) for message in messages))
            yield {"messageStart": {"role": "assistant"}}
            if text:
                yield {"contentBlockDelta": {"delta": {"text": text}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    return Model()


def _strands_text(message: Any) -> str:
    said = []
    for row in _strands_rows({**message, "metadata": message.get("metadata", {})}):
        said += [text_of(row), *(json.dumps(call["arguments"]) for call in _calls(row))]
    return "\n".join(said)


# --- pydantic-ai-harness ------------------------------------------------------------------------------------------


class PydanticAI:
    """`SummarizingCompaction`, called as the agent calls it before each model request."""

    title = "pydantic-ai-harness SummarizingCompaction"
    packages: tuple[str, ...] = ("pydantic-ai-harness", "pydantic-ai-slim")
    frame = ""

    def __init__(self, terms: Terms) -> None:
        self._ai = import_module("pydantic_ai.messages")
        self._tools = import_module("pydantic_ai.tools")
        self._models = import_module("pydantic_ai.models")
        self._usage = import_module("pydantic_ai.usage").RunUsage
        self._model = self._stand_in(terms.answer)
        self._compaction = import_module("pydantic_ai_harness.compaction").SummarizingCompaction(
            max_tokens=terms.trigger_tokens, keep_messages=terms.keep, tokenizer=terms.count
        )
        self._messages: list[Any] = []

    async def add(self, row: Row) -> None:
        self._append(self._messages, row)

    async def view(self) -> list[Row]:
        context = self._tools.RunContext(deps=None, model=self._model, usage=self._usage(), messages=self._messages)
        request = self._models.ModelRequestContext(
            model=self._model,
            messages=list(self._messages),
            model_settings=None,
            model_request_parameters=self._models.ModelRequestParameters(),
        )
        request = await self._compaction.before_model_request(context, request)
        return [row for message in request.messages for row in self._rows(message)]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        messages: list[Any] = []
        for row in rows:
            self._append(messages, row)
        return [back for message in messages for back in self._rows(message)]

    async def close(self) -> None:
        pass

    def _append(self, messages: list[Any], row: Row) -> None:
        """Results of parallel calls share one request."""
        ai, text, metas = self._ai, text_of(row), {"rows": [row.get("metadata")]}
        match row["role"]:
            case "assistant":
                said = [ai.TextPart(text)] if text or not _calls(row) else []
                made = [ai.ToolCallPart(call["tool"], call["arguments"], call["id"]) for call in _calls(row)]
                messages.append(ai.ModelResponse([*said, *made], metadata=metas))
            case "tool":
                part = ai.ToolReturnPart(row["name"], text, row["tool_call_id"])
                last = messages[-1] if messages else None
                if isinstance(last, ai.ModelRequest) and isinstance(last.parts[-1], ai.ToolReturnPart):
                    last.parts = [*last.parts, part]
                    last.metadata = {"rows": last.metadata["rows"] + metas["rows"]}
                else:
                    messages.append(ai.ModelRequest([part], metadata=metas))
            case role:
                made_of = ai.SystemPromptPart if role == "system" else ai.UserPromptPart
                messages.append(ai.ModelRequest([made_of(text)], metadata=metas))

    def _rows(self, message: Any) -> Iterator[Row]:
        ai = self._ai
        metas = (message.metadata or {}).get("rows") or [None] * len(message.parts)
        if isinstance(message, ai.ModelResponse):
            calls = [(p.tool_call_id, p.tool_name, p.args) for p in message.parts if isinstance(p, ai.ToolCallPart)]
            text = "\n".join(part.content for part in message.parts if isinstance(part, ai.TextPart))
            yield _row("assistant", text, calls, metas[0])
            return
        for part, meta in zip(message.parts, metas, strict=True):
            if isinstance(part, ai.ToolReturnPart):
                yield _result(part.tool_call_id, part.tool_name, part.content, meta)
            else:
                yield _row("system" if isinstance(part, ai.SystemPromptPart) else "user", part.content, meta=meta)

    def _stand_in(self, answer: Callable[[str], str]) -> Any:
        ai = self._ai

        async def respond(messages: list[Any], info: Any) -> Any:
            del info
            asked = [part for message in messages for part in message.parts if isinstance(part, ai.UserPromptPart)]
            return ai.ModelResponse([ai.TextPart(answer("\n\n".join(part.content for part in asked)))])

        return import_module("pydantic_ai.models.function").FunctionModel(respond)


# --- agent-framework ----------------------------------------------------------------------------------------------


class AgentFramework:
    """`SummarizationStrategy` under `apply_compaction`.

    It counts rows, not tokens: its threshold is the number of rows that hold the trigger's tokens on average.
    """

    title = "agent-framework SummarizationStrategy"
    packages: tuple[str, ...] = ("agent-framework-core",)
    frame = ""

    def __init__(self, terms: Terms) -> None:
        self._af: Any = import_module("agent_framework")
        self._messages: list[Any] = []
        self._tokenizer = _Tokenizer(terms.count)
        room = terms.trigger_tokens - terms.size([{"role": "system", "content": terms.system}])
        self._strategy = self._composed(terms, max(0, int(room / terms.mean_row) - terms.keep))

    def _summarization(self, terms: Terms, threshold: int) -> Any:
        return self._af.SummarizationStrategy(
            client=self._client(terms.answer), target_count=terms.keep, threshold=threshold, tokenizer=self._tokenizer
        )

    def _composed(self, terms: Terms, threshold: int) -> Any:
        return self._summarization(terms, threshold)

    async def add(self, row: Row) -> None:
        self._messages.append(self._there(row))

    async def view(self) -> list[Row]:
        shown = await self._af.apply_compaction(self._messages, strategy=self._strategy, tokenizer=self._tokenizer)
        return [self._back(message) for message in shown]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        return [self._back(self._there(row)) for row in rows]

    async def close(self) -> None:
        pass

    def _there(self, row: Row) -> Any:
        content, text = self._af.Content, text_of(row)
        extra = {"metadata": row["metadata"]} if "metadata" in row else {}
        if row["role"] == "tool":
            extra["tool_name"] = row["name"]
            parts = [content.from_function_result(row["tool_call_id"], result=text)]
        else:
            parts = [content.from_text(text)] if text or not _calls(row) else []
            for call in _calls(row):
                parts.append(content.from_function_call(call["id"], call["tool"], arguments=call["arguments"]))
        return self._af.Message(role=row["role"], contents=parts, additional_properties=extra)

    def _back(self, message: Any) -> Row:
        extra = message.additional_properties
        meta = extra.get("metadata")
        told = [part for part in message.contents if part.type == "function_result"]
        if told:
            return _result(told[0].call_id, extra["tool_name"], told[0].result, meta)
        made = [part for part in message.contents if part.type == "function_call"]
        calls = [(part.call_id, part.name, part.arguments) for part in made]
        text = "\n".join(part.text for part in message.contents if part.type == "text")
        return _row(str(message.role), text, calls, meta)

    def _client(self, answer: Callable[[str], str]) -> Any:
        af = self._af

        class Client:
            async def get_response(self, messages: list[Any], **_: Any) -> Any:
                text = answer("\n\n".join(message.text for message in messages if message.role != "system"))
                return af.ChatResponse(messages=[af.Message(role="assistant", contents=[text])])

        return Client()


class AgentFrameworkBudget(AgentFramework):
    """`SummarizationStrategy` inside `TokenBudgetComposedStrategy`: the framework's way to a trigger in tokens."""

    title = "agent-framework SummarizationStrategy in TokenBudgetComposedStrategy"

    def _composed(self, terms: Terms, threshold: int) -> Any:
        del threshold
        return self._af.TokenBudgetComposedStrategy(
            token_budget=terms.trigger_tokens,
            tokenizer=self._tokenizer,
            strategies=[self._summarization(terms, threshold=0)],
        )


class _Tokenizer:
    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    def count_tokens(self, text: str) -> int:
        return self._count(text)


PEERS: tuple[type[Contestant], ...] = (LangChain, Strands, PydanticAI, AgentFramework, AgentFrameworkBudget)
