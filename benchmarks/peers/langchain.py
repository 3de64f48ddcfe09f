"""langchain's `SummarizationMiddleware` as a contestant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from unittest.mock import patch

from .base import Peer, Row, Terms, calls_of, result, spoken, text_of


class LangChain(Peer):
    """`SummarizationMiddleware`, called as `create_agent` calls it before each model request, by its async path.

    The agent's state holds no system prompt, so the trigger is lowered by its length.
    """

    packages = ("langchain", "langchain-core", "langgraph")

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._lc = import_module("langchain_core.messages")
        self._add_messages = import_module("langgraph.graph.message").add_messages
        self.too_long = import_module("langchain_core.exceptions").ContextOverflowError
        self._middleware = import_module("langchain.agents.middleware").SummarizationMiddleware(
            model=self._model(),
            trigger=("tokens", terms.trigger_tokens - terms.size(terms.system_rows)),
            keep=("messages", terms.keep),
            token_counter=lambda messages: terms.size(self._rows(messages)),
            **self.options,
        )
        self._runtime = import_module("langgraph.runtime").Runtime()

    async def add(self, row: Row) -> None:
        made: list[Any] = []
        self._append(made, row)
        self._messages = self._add_messages(self._messages, made)

    async def view(self) -> list[Row]:
        # The middleware sleeps between retries.
        with patch.object(asyncio, "sleep", self._terms.clock.sleep):
            update = await self._middleware.abefore_model({"messages": self._messages}, self._runtime)
        if update is not None:
            self._messages = self._add_messages(self._messages, update["messages"])
        return [*self._terms.system_rows, *self._rows(self._messages)]

    def _there(self, messages: list[Any], row: Row) -> None:
        text = text_of(row)
        match row["role"]:
            case "user":
                made = self._lc.HumanMessage(text)
            case "tool":
                made = self._lc.ToolMessage(text, tool_call_id=row["tool_call_id"], name=row["name"])
            case _:
                calls = [{"id": call["id"], "name": call["tool"], "args": call["arguments"]} for call in calls_of(row)]
                made = self._lc.AIMessage(text, tool_calls=calls)
        messages.append(made)

    def _back(self, message: Any) -> Sequence[Row]:
        match message.type:
            case "tool":
                return [result(message.tool_call_id, message.name, message.text)]
            case "ai":
                calls = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
                return [spoken("assistant", message.text, calls)]
        return [spoken({"human": "user"}.get(message.type, message.type), message.text)]

    def _model(self) -> Any:
        messages, outputs = self._lc, import_module("langchain_core.outputs")
        base: Any = import_module("langchain_core.language_models").BaseChatModel
        ask = self._ask

        class Model(base):  # type: ignore[misc]
            @property
            def _llm_type(self) -> str:
                return "stand-in"

            def _generate(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            async def _agenerate(self, prompt: list[Any], *_: Any, **given: Any) -> Any:
                said = await ask("\n\n".join(message.text for message in prompt), "", given.get("max_tokens"))
                return outputs.ChatResult(generations=[outputs.ChatGeneration(message=messages.AIMessage(said))])

        return Model()
