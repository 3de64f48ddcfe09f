"""`SummarizingMiddleware`: requests of LangChain's agents that fit the window, while the agent's state stays whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.runnables import RunnableConfig

from context_summarize.config import Config
from context_summarize.formats import from_openai, to_openai
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.of_function import Complete, FunctionProvider, provider_of
from context_summarize.session.manager import SummarizingContextManager

_MOST = 64
"""Conversations whose contexts are kept; that of another one is made anew."""
_ID = "langchain:id"
"""Mark of a row: the id of its message."""
_APART: RunnableConfig = {"callbacks": [], "metadata": {"lc_source": "summarization"}}
"""Options of calls for summaries: no text of theirs reaches those who stream the agent's answers."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    context: SummarizingContextManager
    provider: FunctionProvider
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from a request's messages to its view: forks of a conversation begin with the same message."""


class SummarizingMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model a view of the conversation; `create_agent(model, tools, middleware=[…])` takes it.

    Messages that the view shows whole are the agent's own objects. The agent runs with `ainvoke` or `astream`.

    Args:
        context_window, max_output_tokens: tokens of the agent's model.
        model: writes the summaries; None: the agent's own.
        settings: those of `SummarizingContextManager`; `summary_role` is `user`, because some models take system
            messages at the beginning alone.

    Raises:
        ConfigError: a setting is wrong.
    """

    def __init__(
        self, *, context_window: int, max_output_tokens: int, model: BaseChatModel | None = None, **settings: Any
    ) -> None:
        super().__init__()
        self._config = Config.from_mapping({"summary_role": "user", **settings})
        self._window = {"context_window": context_window, "max_output_tokens": max_output_tokens}
        self._model = model
        self._conversations: dict[Any, _Conversation] = {}
        """By event loop and first message; the last used is at the end."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Sends the view instead of all messages, and takes in the usage of the answer."""
        talk = await self._conversation(request)
        async with talk.lock:
            messages = await _view(talk, request)
        answer = await handler(request.override(messages=messages))
        for message in answer.result:
            await talk.context.observe_usage(getattr(message, "usage_metadata", None))
        return answer

    async def _conversation(self, request: ModelRequest[Any]) -> _Conversation:
        key = asyncio.get_running_loop(), request.messages[0].id if request.messages else None
        talk = self._conversations.pop(key, None) or _Conversation(
            SummarizingContextManager(config=self._config),
            provider_of(_writer(self._model or request.model), **self._window, name="langchain"),
        )
        self._conversations[key] = talk
        if len(self._conversations) > _MOST:
            oldest = self._conversations.pop(next(iter(self._conversations)))
            async with oldest.lock:
                await oldest.context.close()
        return talk


def _writer(model: BaseChatModel) -> Complete:
    async def complete(rows: list[JsonRow], _: int) -> str:
        return str((await model.ainvoke(convert_to_messages(to_openai(rows)), _APART)).text)

    return complete


async def _view(talk: _Conversation, request: ModelRequest[Any]) -> list[Any]:
    """Returns the messages to send, without the system prompt, which stays apart."""
    system = [] if request.system_message is None else _rows(request.system_message)
    rows_of = [(message, _rows(message)) for message in request.messages]
    await talk.context.set_messages([*system, *(row for _, rows in rows_of for row in rows)])
    view = await talk.context.get_messages_for_request(provider=talk.provider)
    own = {message.id: (to_openai(rows), message) for message, rows in rows_of if message.id and len(rows) == 1}
    shown: list[Any] = []
    for row in view[len(system) :]:
        sent = to_openai([row])
        whole, message = own.get(row["metadata"].get(_ID), (None, None))
        shown += [message] if sent == whole else convert_to_messages(sent)
    return shown


def _rows(message: AnyMessage) -> list[JsonRow]:
    """Returns a message as rows, each marked with its id."""
    return [{**row, "metadata": {_ID: message.id}} for row in from_openai(convert_to_openai_messages([message]))]
