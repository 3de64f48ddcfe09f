"""strands' `SummarizingConversationManager` as a contestant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar
from unittest.mock import patch

from .base import DoesNotFit, Row, Terms, calls_of, result, run_blocking, spoken, text_of, wait_for


class Strands:
    """`SummarizingConversationManager` with proactive compression, in an agent whose loop is followed up to the model.

    Before a request the agent fires `BeforeModelCallEvent`; a model that refuses the request as too long makes it call
    `reduce_context` and try again, until it fits or raises. The agent's loop has no bound of its own: with a summary as
    long as its input it can end in `RecursionError`. Here the refusal reaches the host after `TRIES`, so that a run
    ends.

    `reduce_context` is synchronous and runs its model in a thread with an event loop of its own; here it is awaited on
    this loop.
    """

    TRIES = 10

    packages: tuple[str, ...] = ("strands-agents",)
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, terms: Terms) -> None:
        self._strands = import_module("strands")
        self._managers = import_module("strands.agent.conversation_manager")
        self._module = import_module("strands.agent.conversation_manager.summarizing_conversation_manager")
        self._event = import_module("strands.hooks").BeforeModelCallEvent
        self._overflow = import_module("strands.types.exceptions").ContextWindowOverflowException
        self._terms = terms
        self._manager = self._managers.SummarizingConversationManager(
            preserve_recent_messages=self._terms.keep,
            proactive_compression={"compression_threshold": self._terms.trigger},
            **self.options,
        )
        self._agent = self._strands.Agent(
            model=_model(self._terms, self._overflow),
            conversation_manager=self._manager,
            system_prompt=self._terms.system or None,
            callback_handler=None,
        )

    async def add(self, row: Row) -> None:
        if not self._terms.is_system_prompt(row):
            _append(self._agent.messages, row)

    async def view(self) -> list[Row]:
        with patch.object(self._module, "run_async", _on_this_loop):
            for _ in range(self.TRIES):
                event = self._event(agent=self._agent, projected_input_tokens=self._terms.size(self._rows()))
                await run_blocking(self._agent.hooks.invoke_callbacks, event)
                rows = self._rows()
                if self._terms.size(rows) <= self._terms.budget:
                    return rows
                await run_blocking(self._manager.reduce_context, self._agent, e=self._refused())
        raise self._refused()

    def _refused(self) -> Exception:
        refused: Exception = self._overflow("the request is longer than the context window")
        return refused

    def _rows(self) -> list[Row]:
        return [*self._terms.system_rows, *(row for message in self._agent.messages for row in _rows(message))]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        messages: list[Row] = []
        for row in rows:
            _append(messages, row)
        return [back for message in messages for back in _rows(message)]

    async def close(self) -> None:
        pass


def _on_this_loop(function: Callable[[], Awaitable[Any]]) -> Any:
    return wait_for(function())


def _append(messages: list[Any], row: Row) -> None:
    """Results of parallel calls share one user message; a system row, which strands has not, is a marked user's."""
    metas = [row.get("metadata")]
    if row["role"] == "tool":
        told = {"toolUseId": row["tool_call_id"], "status": "success", "content": [{"text": row["content"]}]}
        content: list[Row] = [{"toolResult": told}]
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
    blocks: list[Row] = [{"text": text}] if text or not calls_of(row) else []
    for call in calls_of(row):
        blocks.append({"toolUse": {"toolUseId": call["id"], "name": call["tool"], "input": call["arguments"]}})
    role = "assistant" if row["role"] == "assistant" else "user"
    custom = {"rows": metas, "system": [True]} if row["role"] == "system" else {"rows": metas}
    messages.append({"role": role, "content": blocks, "metadata": {"custom": custom}})


def _rows(message: Any) -> Iterator[Row]:
    custom = message.get("metadata", {}).get("custom", {})
    metas = custom.get("rows", [None])
    content = message["content"]
    if any("toolResult" in block for block in content):
        for block, meta, name in zip(content, metas, custom["names"], strict=True):
            told = block["toolResult"]
            yield result(told["toolUseId"], name, "".join(part["text"] for part in told["content"]), meta)
        return
    text = "\n".join(block["text"] for block in content if "text" in block)
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    calls = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
    yield spoken("system" if custom.get("system") else message["role"], text, calls, metas[0])


def _model(terms: Terms, overflow: type[Exception]) -> Any:
    base: Any = import_module("strands.models").Model

    class Model(base):  # type: ignore[misc]
        def get_config(self) -> Any:
            return {"context_window_limit": terms.budget}

        def update_config(self, **config: Any) -> None:
            pass

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(
            self, messages: list[Any], tool_specs: Any = None, system_prompt: str | None = None, **_: Any
        ) -> AsyncIterator[Any]:
            shown = "\n\n".join(_text(message) for message in messages)
            try:
                text = await terms.ask(shown, system_prompt or "", None)
            except DoesNotFit as error:
                raise overflow(str(error)) from error
            yield {"messageStart": {"role": "assistant"}}
            if text:
                yield {"contentBlockDelta": {"delta": {"text": text}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    return Model()


def _text(message: Any) -> str:
    said = []
    for row in _rows(message):
        said += [text_of(row), *(json.dumps(call["arguments"]) for call in calls_of(row))]
    return "\n".join(said)
