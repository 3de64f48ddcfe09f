"""LangChain's own agents with our middleware: the model gets a view, the agent's state keeps every message."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from context_summarize import ConfigError, SummarizingContextManager
from context_summarize.formats import from_openai
from context_summarize.langchain import SummarizingMiddleware
from context_summarize.testing import broken_pairs


class Model(BaseChatModel):
    """Calls the tool for each new message of the user, and writes summaries; it records what it was sent."""

    requests: list[list[Any]] = []  # noqa: RUF012 - pydantic copies it for each model
    summaries: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        if not str(messages[0].content).startswith("You serve"):
            self.summaries += 1
            return ChatResult(generations=[ChatGeneration(message=AIMessage("Goal: orders were looked up."))])
        self.requests.append(messages)
        made = AIMessage("It is on its way.")
        if isinstance(messages[-1], HumanMessage):
            order = messages[-1].text.split()[-1]
            calls = [{"id": f"c-{order}-{at}", "name": "lookup", "args": {"order": order}} for at in range(2)]
            thought = {"type": "thinking", "thinking": "hm", "signature": "s1g"}
            made = AIMessage([thought, {"type": "text", "text": "Let me look."}], tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=made)])


def lookup(order: str) -> str:
    """Looks up an order."""
    return f"{order}: " + ", ".join(f"stop {at} {at * 7 % 31} kg" for at in range(60))


def agent_of(model: Model, **settings: Any) -> Any:
    middleware = SummarizingMiddleware(context_window=8_000, max_output_tokens=1_000, keep_recent=6, **settings)
    return create_agent(
        model, [lookup], system_prompt="You serve a shop.", middleware=[middleware], checkpointer=InMemorySaver()
    )


async def told(agent: Any, thread: str, orders: range) -> list[Any]:
    config = {"configurable": {"thread_id": thread}}
    for order in orders:
        state = await agent.ainvoke({"messages": [("user", f"Where is {thread}-{order}")]}, config)
    return list(state["messages"])


async def test_an_agents_requests_fit_while_its_state_keeps_every_message() -> None:
    """Pairs are whole; what is shown whole is the agent's own message, with its signed thinking."""
    model = Model()
    messages = await told(agent_of(model), "ORD", range(20))
    assert len(messages) == 20 * 5
    assert model.summaries > 0
    last = model.requests[-1]
    assert len(last) < 50
    assert [type(message) for message in last[:1]] == [SystemMessage]
    assert not any(isinstance(message, SystemMessage) for message in last[1:])
    assert any("Goal: orders were looked up." in message.text for message in last)
    for request in model.requests:
        rows = from_openai(convert_to_openai_messages(request))
        assert broken_pairs(rows) == []
        assert sum(len(str(row)) for row in rows) / 2 < 8_000
    kept = [message for message in last if isinstance(message, AIMessage) and message.tool_calls]
    assert kept
    assert all("s1g" in str(message.content) for message in kept)
    assert [message.id for message in last[-5:]] == [message.id for message in messages[-6:-1]]


async def test_conversations_at_the_same_time_never_mix() -> None:
    model = Model()
    agent = agent_of(model)
    await asyncio.gather(*(told(agent, name, range(12)) for name in ("ABC", "XYZ")))
    for request in model.requests:
        text = " ".join(
            message.text for message in request if isinstance(message, HumanMessage) or message.type == "tool"
        )
        assert ("ABC-" in text) != ("XYZ-" in text)


async def test_summaries_do_not_reach_those_who_stream_the_answers() -> None:
    model = Model()
    agent, config = agent_of(model), {"configurable": {"thread_id": "1"}}
    streamed = []
    for order in range(20):
        asked = {"messages": [("user", f"Where is ORD-{order}")]}
        async for message, _ in agent.astream(asked, config, stream_mode="messages"):
            streamed.append(message.text)
    assert model.summaries > 0
    assert any("on its way" in text for text in streamed)
    assert not any("Goal:" in text for text in streamed)


async def test_some_dozens_of_contexts_are_kept_in_memory() -> None:
    """Of the conversations used last; a server has any number of them. The others are made anew."""
    middleware = SummarizingMiddleware(context_window=8_000, max_output_tokens=1_000)

    def contexts() -> int:
        gc.collect()
        return sum(isinstance(one, SummarizingContextManager) for one in gc.get_objects())

    async def answer(request: ModelRequest[Any]) -> ModelResponse[Any]:
        return ModelResponse(result=[AIMessage("Yes.")])

    before = contexts()
    for number in range(100):
        request = ModelRequest(model=Model(), messages=[HumanMessage("Hello", id=f"h{number}")])
        await middleware.awrap_model_call(request, answer)
    assert 50 < contexts() - before < 90


def test_a_wrong_setting_is_refused_when_the_middleware_is_made() -> None:
    with pytest.raises(ConfigError, match="keep_recent must be"):
        SummarizingMiddleware(context_window=8_000, max_output_tokens=1_000, keep_recent=-1)
