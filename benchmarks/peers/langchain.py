"""langchain's `SummarizationMiddleware` as a contestant."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar
from unittest.mock import patch

from .base import DoesNotFit, Row, Terms, calls_of, result, spoken, text_of


class LangChain:
    """`SummarizationMiddleware`, called as `create_agent` calls it before each model request, by its async path.

    The agent's state holds no system prompt, so the trigger is lowered by its length.
    """

    packages: tuple[str, ...] = ("langchain", "langchain-core", "langgraph")
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, terms: Terms) -> None:
        self._lc = import_module("langchain_core.messages")
        self._add_messages = import_module("langgraph.graph.message").add_messages
        self._terms = terms
        self._middleware = import_module("langchain.agents.middleware").SummarizationMiddleware(
            model=_model(terms),
            trigger=("tokens", terms.trigger_tokens - terms.size(terms.system_rows)),
            keep=("messages", terms.keep),
            token_counter=lambda messages: terms.size([self._back(message) for message in messages]),
            **self.options,
        )
        self._runtime = import_module("langgraph.runtime").Runtime()
        self._messages: list[Any] = []

    async def add(self, row: Row) -> None:
        if not self._terms.is_system_prompt(row):
            self._messages = self._add_messages(self._messages, [self._there(row)])

    async def view(self) -> list[Row]:
        # its retries sleep
        with patch.object(asyncio, "sleep", self._terms.clock.sleep):
            update = await self._middleware.abefore_model({"messages": self._messages}, self._runtime)
        if update is not None:
            self._messages = self._add_messages(self._messages, update["messages"])
        return [*self._terms.system_rows, *(self._back(message) for message in self._messages)]

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
        calls = [{"id": call["id"], "name": call["tool"], "args": call["arguments"]} for call in calls_of(row)]
        return self._lc.AIMessage(text, tool_calls=calls, additional_kwargs=extra)

    def _back(self, message: Any) -> Row:
        text, meta = message.text, message.additional_kwargs.get("metadata")
        match message.type:
            case "tool":
                return result(message.tool_call_id, message.name, text, meta)
            case "ai":
                calls = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
                return spoken("assistant", text, calls, meta)
        return spoken({"human": "user"}.get(message.type, message.type), text, meta=meta)


def _model(terms: Terms) -> Any:
    messages, outputs = import_module("langchain_core.messages"), import_module("langchain_core.outputs")
    overflow = import_module("langchain_core.exceptions").ContextOverflowError
    base: Any = import_module("langchain_core.language_models").BaseChatModel

    class Model(base):  # type: ignore[misc]
        @property
        def _llm_type(self) -> str:
            return "stand-in"

        def _generate(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def _agenerate(self, prompt: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            del stop, run_manager
            try:
                shown = "\n\n".join(message.text for message in prompt)
                said = await terms.ask(shown, "", kwargs.get("max_tokens"))
            except DoesNotFit as error:
                raise overflow(str(error)) from error
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=messages.AIMessage(said))])

    return Model()
