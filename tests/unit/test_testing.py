"""`context_summarize.testing`: the scripted provider and the builders of histories, which users' tests rely on."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from amplifier_core.llm_errors import RateLimitError
from amplifier_core.message_models import ChatRequest, ChatResponse, Message, TextBlock, ToolCall

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call
from context_summarize.session.windows import Window, provider_window
from context_summarize.summaries.answer import answer_text
from context_summarize.testing import (
    ScriptedProvider,
    assistant,
    call,
    calls,
    hook,
    result,
    tool_session,
    user,
)


def request(text: str = "x" * 400) -> ChatRequest:
    return ChatRequest(messages=[Message(role="user", content=text)])


class TestScriptedProvider:
    async def test_it_answers_in_the_order_of_the_script_and_records_what_it_was_asked(self) -> None:
        """Text is answered, an exception raised, a response returned, a function called; then `then` for ever."""
        response = ChatResponse(content=[TextBlock(text="whole")], finish_reason="length")
        script: list[Any] = ["one", RateLimitError("slow"), response, lambda asked: str(asked.messages[0].content)]
        provider, asked = ScriptedProvider(script, then="more"), [request(), request(), request(), request("echo")]
        assert answer_text(await provider.complete(asked[0])) == "one"
        with pytest.raises(RateLimitError):
            await provider.complete(asked[1], model="m")
        assert await provider.complete(asked[2]) is response
        assert answer_text(await provider.complete(asked[3])) == "echo"
        assert provider.calls == 4
        assert provider.requests == asked
        assert provider.options == [{}, {"model": "m"}, {}, {}]
        assert [answer_text(await provider.complete(request())) for _ in range(2)] == ["more", "more"]
        assert answer_text(await ScriptedProvider().complete(request())).startswith("Goal:")
        with pytest.raises(RateLimitError):
            await ScriptedProvider(then=RateLimitError("slow")).complete(request())

    async def test_calls_wait_for_the_gate_and_cancelled_ones_are_counted(self) -> None:
        """So a test decides when a provider answers."""
        gate = asyncio.Event()
        provider = ScriptedProvider(["one", "two"], gate=gate)
        first, second = (asyncio.create_task(provider.complete(request())) for _ in range(2))
        await asyncio.sleep(0)
        assert provider.calls == 2
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert provider.cancelled == 1
        gate.set()
        assert answer_text(await second) == "two"

    async def test_hosts_find_what_they_ask_a_provider_for(self) -> None:
        """Name, window, models, tool calls."""
        provider = ScriptedProvider(name="mine", context_window=9_000, max_output_tokens=500)
        assert await provider_window(provider) == Window(9_000, 500)
        assert provider.get_info().id == provider.name == "mine"
        assert await provider.list_models() == []
        made = ToolCall(id="a", name="f", arguments={})
        assert provider.parse_tool_calls(ChatResponse(content=[], tool_calls=[made])) == [made]
        assert provider.parse_tool_calls(ChatResponse(content=[])) == []


class TestBuilders:
    def test_rows_have_the_shapes_of_the_hosts_loops(self) -> None:
        """A call stands as block and in tool_calls; a result names its call."""
        assert user("x") == {"role": "user", "content": "x"}
        assert assistant("x") == {"role": "assistant", "content": "x"}
        assert call("a", "weather", "Let me look.", city="Oslo") == {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_call", "id": "a", "name": "weather", "input": {"city": "Oslo"}},
            ],
            "tool_calls": [{"id": "a", "tool": "weather", "arguments": {"city": "Oslo"}}],
        }
        assert result("a") == {"role": "tool", "tool_call_id": "a", "name": "bash", "content": "ok"}
        assert [made.id for made in analyse(calls(("a", "f", {}), ("b", "g", {}))).calls] == ["a", "b"]
        assert not analyse(hook("x")).rendered
        assert hook("x", "user")["role"] == "user"

    def test_a_tool_session_is_made_of_turns_with_ids_of_their_own(self) -> None:
        """A request, a call, its result, an answer; repeatable, and it can be continued."""
        rows = [analyse(normalise(raw)) for raw in tool_session(3)]
        assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant"] * 3
        assert rows[1].calls == (Call("call_0", "lookup", {"order": "ORD00000"}),)
        made: list[Any] = [row.calls[0].id for row in rows if row.calls]
        assert made == [row.result_ids[0] for row in rows if row.result_ids] == ["call_0", "call_1", "call_2"]
        assert tool_session(3) == tool_session(3) == [*tool_session(1), *tool_session(2, start=1)]
        sizes = [len(tool_session(1, size=size)[2]["content"]) for size in (16, 400, 4_000)]
        assert all(smaller < larger for smaller, larger in pairwise(sizes))
