"""The tools `recall` and `context`: what they take, how they answer and refuse, and what they do to a real session."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager, mount
from context_summarize.errors import RecallError
from context_summarize.recall import RecallQuery, limit_tokens
from context_summarize.recall.tools import RecallTool, mount_steering
from context_summarize.testing import ScriptedProvider
from tests.support.rows import call, feed, result, tool_session, user


async def said(tool: Any, **given: Any) -> str:
    """Text and nothing around it: hosts turn structured output into JSON, which escapes every line end."""
    done = await tool.execute(given)
    assert done.success, done.output
    assert done.error is None
    assert isinstance(done.output, str)
    return done.output


async def refused(tool: Any, given: Any) -> str:
    done = await tool.execute(given)
    assert not done.success
    assert done.get_serialized_output() == f"Error: {done.error['message']}", "the model reads this"
    return str(done.get_serialized_output())


@pytest.mark.parametrize(
    ("given_input", "says"),
    [
        ({"messages": "9"}, "the conversation has no messages 9; it has 0"),
        ({}, "give words, messages, or both"),
        ({"word": "x"}, "unknown field 'word'; the fields are messages"),
        ({"words": ["x"]}, "words must be text, got list"),
        ({"words": "a " * 190, "messages": "1"}, "the conversation has no messages 1"),
        ({"words": "a " * 251}, " characters, got 501; leave some out"),
    ],
)
async def test_what_recall_cannot_answer_is_no_success_and_says_why(given_input, says):
    manager = SummarizingContextManager(recall_tool=True)
    assert says in await refused(RecallTool(lambda: manager), given_input)
    assert "has nothing to read back" in await refused(RecallTool(lambda: None), given_input)


@pytest.mark.parametrize("asked", [{"messages": "1-9"}, {"words": "port"}])
@pytest.mark.parametrize(
    ("budget", "least", "most"),
    [(1_000, 300, 500), (8_000, 1_000, 1_334), (40_000, 2_000, 4_000), (10**6, 4_000, 4_000)],
)
def test_an_answer_takes_some_tenths_of_a_small_budget_and_4000_tokens_of_a_large_one(
    asked, budget, least, most
) -> None:
    assert least <= limit_tokens(RecallQuery(**asked), budget, budget) <= most
    assert limit_tokens(RecallQuery(**asked), budget, 300) == 300


def test_a_query_of_another_type_is_refused_in_words() -> None:
    with pytest.raises(RecallError, match=r'messages must be text, such as messages="13-58" or .*, got 5'):
        RecallQuery(messages=5)  # type: ignore[arg-type]


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
        assert secret in await said(RecallTool(lambda: manager), words="code gate 7142", messages="")
        assert line in await said(RecallTool(lambda: manager), messages=found[1])
        await manager.set_messages([user("The gate is open.")])
        assert await said(RecallTool(lambda: manager), words="7142") == "[No message has any of these words: 7142]"
    await manager.close()


@pytest.fixture
async def mounted() -> AsyncIterator[Any]:
    """The tools and the context of a session of 48 messages."""
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, {"cache": "memory", "keep_recent": 4})
    await mount_steering(coordinator)
    await feed(coordinator.get("context"), tool_session(12, size=800))
    yield coordinator.get("tools")["context"], coordinator.get("context")
    await cleanup()


@pytest.mark.parametrize(
    ("messages", "numbers"),
    [("12", ": 12"), ("1, 4-5", "s: 1, 4, 5"), ("#1 and 4 to 5", "s: 1, 4, 5"), ([1, "4-5"], "s: 1, 4, 5")],
)
async def test_numbers_are_read_as_people_and_models_write_them(mounted, messages, numbers):
    tool, _ = mounted
    assert (await said(tool, action="pin", messages=messages)).startswith(f"Pinned message{numbers}. ")


@pytest.mark.parametrize(
    ("given_input", "says"),
    [
        (None, "the input must be an object, got NoneType"),
        ({}, "give an action: one of status, show, compact, undo, pin, unpin; got none"),
        ({"action": "drop_all"}, "pin, unpin; got 'drop_all'"),
        ({"action": "undo", "force": True}, "unknown field 'force'; the fields are action, keep, messages, summary"),
        ({"action": "show", "summary": "1"}, "there is no summary 1; the request shows no summary yet"),
        ({"action": "show"}, "there is no summary 0"),
        ({"action": "undo", "keep": "x"}, "keep does not belong to the action undo; leave it out"),
        ({"action": "compact", "messages": "3"}, "messages does not belong to the action compact"),
        ({"action": "pin"}, "messages must be numbers such as"),
        ({"action": "pin", "messages": "the last one"}, "messages must be numbers such as"),
        ({"action": "pin", "messages": "9-3"}, "messages must be numbers such as"),
        ({"action": "pin", "messages": "1-999999999"}, "at most 50 messages can be named at once"),
        ({"action": "pin", "messages": "400"}, "there is no message 400 to pin"),
        ({"action": "undo"}, "no compaction to take back"),
    ],
)
async def test_what_context_cannot_do_is_refused_and_nothing_is_done(mounted, given_input, says):
    tool, _ = mounted
    assert says in await refused(tool, given_input)
    assert "Nothing is summarised yet." in await said(tool, action="status")
    assert await said(tool, action="unpin") == "No message is pinned."


async def test_a_user_steers_a_session_through_the_model(mounted):
    tool, context = mounted
    provider = ScriptedProvider(context_window=20_000, max_output_tokens=1_000)
    before = await context.get_messages_for_request(provider=provider)

    assert (await said(tool, action="compact", keep=" the state of ORD00003 ", messages="")).startswith("Compacted: ")
    assert any("the state of ORD00003" in str(request.messages) for request in provider.requests)
    assert len(await context.get_messages_for_request(provider=provider)) < len(before)
    status = await said(tool, action="status")
    assert re.search(r"\n\d summar(y|ies) replace .* messages; 1 compaction so far", status)
    assert re.search(
        r"\nOf these: summaries \d+, the thread \d+, messages before .* \d+, messages after them \d", status
    )
    assert re.search(
        r"\nThis session's summaries took \d calls?, [\d,]+ tokens in and \d+ out: dollars unknown\.", status
    )
    shown = await said(tool, action="show", summary=1)
    assert " of messages 1 to " in shown.splitlines()[1]
    assert "Goal: the user asked for something, and it was done." in shown
    assert "the request shows summaries 1 to " in await refused(tool, {"action": "show", "summary": "99"})
    assert (await said(tool, action="undo")).startswith("The last compaction is taken back: ")
    assert await context.get_messages_for_request(provider=provider) == before
    assert (await said(tool, action="pin", messages="1")).endswith("from the next compaction on.")
    assert await said(tool, action="unpin") == "No message is pinned."
