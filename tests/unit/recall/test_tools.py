"""The tools `recall` and `context`: what they take, how they answer and refuse, and what they do to a real session."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager, mount
from context_summarize.errors import RecallError
from context_summarize.recall import RecallAnswer, RecallQuery
from context_summarize.recall.tools import ContextTool, RecallTool, mount_steering
from context_summarize.testing import ScriptedProvider
from tests.support.rows import call, feed, result, tool_session, user


async def said(tool: Any, **given: Any) -> str:
    result = await tool.execute(given)
    assert result.success, result.output
    assert result.error is None
    return str(result.output)


async def refused(tool: Any, given: Any) -> str:
    result = await tool.execute(given)
    assert not result.success
    assert result.error is not None
    assert result.get_serialized_output() == f"Error: {result.error['message']}", "the model reads this"
    return str(result.get_serialized_output())


async def test_an_answer_of_recall_is_text_and_nothing_around_it():
    """Hosts turn structured output into JSON, which costs tokens and escapes every line end."""
    context: Any = SimpleNamespace(recall=AsyncMock(return_value=RecallAnswer("[Messages 1 to 2]", 8, (1, 2), None)))

    assert await said(RecallTool(lambda: context), messages="1-2", words="") == "[Messages 1 to 2]"
    context.recall.assert_awaited_once_with(RecallQuery(messages="1-2"))


def raising(error: Exception) -> Any:
    """As much of a context as the tool asks for."""
    return SimpleNamespace(recall=AsyncMock(side_effect=error))


NOT_ASKED = raising(AssertionError("not asked"))


@pytest.mark.parametrize(
    ("context", "given_input", "says"),
    [
        (raising(RecallError("no such row; ask for 1 to 4")), {"messages": "9"}, "no such row; ask for 1 to 4"),
        (NOT_ASKED, {}, "give either messages or words, not none"),
        (NOT_ASKED, {"messages": "1", "words": "x"}, "give either messages or words, not messages and words"),
        (NOT_ASKED, {"word": "x"}, "unknown field 'word'; the fields are messages"),
        (NOT_ASKED, {"words": ["x"]}, "words must be text, got list"),
        (None, {"messages": "1"}, "has nothing to read back"),
    ],
)
async def test_what_recall_cannot_answer_is_no_success_and_says_why(context: Any, given_input, says):
    assert says in await refused(RecallTool(lambda: context), given_input)


@pytest.mark.parametrize("asked_for", [True, False])
async def test_a_shortened_result_says_how_to_read_the_whole_of_it(asked_for):
    """What its mark says is what the tool takes, word for word; without the tool it says nothing of it."""
    settings: dict[str, Any] = {"keep_recent": 2, "shorten_tool_results": 200, "segment_tokens": 8_192}
    manager = SummarizingContextManager(recall_tool=asked_for, cache="memory", **settings)
    secret, line = "the code of the gate is 7142", "a line of the log "
    rows = [user("Read the log."), call("c1", "read"), result("c1", f"{line * 400}{secret} {line * 400}")]
    await manager.set_messages([*rows, *tool_session(8)])

    view = await manager.get_messages_for_request(6_000, ScriptedProvider())

    [shown] = [row["content"] for row in view if row.get("tool_call_id") == "c1"]
    assert "characters left out" in shown
    assert secret not in shown
    found = re.search(r'recall\(messages="([^"]+)"\)', shown)
    assert (found is not None) == asked_for
    if found:
        assert secret in await said(RecallTool(lambda: manager), words="code gate 7142")
        assert line in await said(RecallTool(lambda: manager), messages=found[1])
    await manager.close()


class Offers:
    def __init__(self, **answers: Any) -> None:
        statistics = SimpleNamespace(view_tokens=20_000, budget=40_000, summaries=3, fallbacks=0, compactions=2)
        self.answers = {"statistics": statistics, **answers}
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def __call__(self, name: str) -> Any:
        async def work(*arguments: Any) -> Any:
            self.asked.append((name, arguments))
            return self.answers[name.removeprefix("context.")]

        return work


@pytest.mark.parametrize(
    ("messages", "numbers"),
    [("12", [12]), ("3, 7-9", [3, 7, 8, 9]), ("#3 and 5 to 6", [3, 5, 6]), ([3, "5-6"], [3, 5, 6])],
)
async def test_numbers_are_read_as_people_and_models_write_them(messages, numbers):
    offers = Offers(pin=tuple(numbers))
    assert await said(ContextTool(offers), action="pin", messages=messages)
    assert offers.asked == [("context.pin", (numbers,))]


@pytest.mark.parametrize(
    ("given_input", "says"),
    [
        (None, "the input must be an object, got NoneType"),
        ({}, "give an action: one of status, compact, undo, pin, unpin, not ''"),
        ({"action": "drop_all"}, "pin, unpin, not 'drop_all'"),
        ({"action": "undo", "force": True}, "unknown field 'force'; the fields are action, keep, messages"),
        ({"action": "undo", "keep": "x"}, "keep does not belong to the action undo; leave it out"),
        ({"action": "compact", "messages": "3"}, "messages does not belong to the action compact"),
        ({"action": "pin"}, "messages must be numbers such as"),
        ({"action": "pin", "messages": "the last one"}, "messages must be numbers such as"),
        ({"action": "pin", "messages": "9-3"}, "messages must be numbers such as"),
        ({"action": "pin", "messages": "1-999999999"}, "at most 50 messages can be named at once"),
    ],
)
async def test_what_context_cannot_do_is_refused_and_nothing_is_asked(given_input, says):
    offers = Offers(compact=1, undo=1, pin=(), unpin=())

    assert says in await refused(ContextTool(offers), given_input)
    assert offers.asked == []


async def test_fallbacks_are_counted_where_there_are_any():
    """Summaries that the offline provider has made by code are none, so nothing is said of those by code."""
    offers = Offers(preview=SimpleNamespace(messages=()))
    told = await said(ContextTool(offers), action="status")
    assert "3 summaries stand for older messages; 2 compactions so far." in told
    offers.answers["statistics"].fallbacks = 1
    told = await said(ContextTool(offers), action="status")
    assert "older messages, 1 fallback among them; 2 compactions so far." in told


async def test_a_user_steers_a_session_through_the_model():
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, {"cache": "memory", "keep_recent": 4})
    await mount_steering(coordinator)
    tool, context = coordinator.get("tools")["context"], coordinator.get("context")
    await feed(context, tool_session(12, size=800))
    provider = ScriptedProvider(context_window=20_000, max_output_tokens=1_000)
    before = await context.get_messages_for_request(provider=provider)

    async def asked(**given: Any) -> str:
        return str((await tool.execute(given)).output)

    assert "Nothing is summarised yet." in await asked(action="status")
    assert "no compaction to take back" in await asked(action="undo")
    assert (await asked(action="compact", keep=" the state of ORD00003 ", messages="")).startswith("Compacted: ")
    assert any("the state of ORD00003" in str(request.messages) for request in provider.requests)
    assert len(await context.get_messages_for_request(provider=provider)) < len(before)
    assert "1 compaction so far" in await asked(action="status")
    assert (await asked(action="undo")).startswith("The last compaction is taken back: ")
    assert await context.get_messages_for_request(provider=provider) == before
    pinned = await asked(action="pin", messages="1")
    assert pinned.startswith("Pinned message: 1. ")
    assert pinned.endswith("from the next compaction on.")
    assert "there is no message 400 to pin" in await asked(action="pin", messages="400")
    assert await asked(action="unpin") == "No message is pinned."
    await cleanup()
