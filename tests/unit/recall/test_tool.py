"""The recall tool: what it tells the model, what it takes, and how it answers and refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.errors import RecallError
from context_summarize.recall import RecallAnswer, RecallQuery
from context_summarize.recall.tools import RecallTool
from context_summarize.testing import ScriptedProvider
from tests.support.rows import call, result, tool_session, user


class Context:
    """As much of a context as the tool asks for."""

    def __init__(self, answer: RecallAnswer | Exception) -> None:
        self.answer = answer
        self.queries: list[RecallQuery] = []

    async def recall(self, query: RecallQuery) -> RecallAnswer:
        self.queries.append(query)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def tool(context: Any) -> RecallTool:
    return RecallTool(lambda: context)


async def test_an_answer_is_text_and_nothing_around_it():
    """Hosts turn structured output into JSON, which costs tokens and escapes every line end."""
    context = Context(RecallAnswer("[Messages 1 to 2]", 8, (1, 2), None))

    result = await tool(context).execute({"messages": "1-2", "words": ""})

    assert (result.success, result.output, result.error) == (True, "[Messages 1 to 2]", None)
    assert context.queries == [RecallQuery(messages="1-2")]


@pytest.mark.parametrize(
    ("context", "given_input", "says"),
    [
        (Context(RecallError("no such row; ask for 1 to 4")), {"messages": "9"}, "no such row; ask for 1 to 4"),
        (Context(AssertionError("not asked")), {}, "give either messages or words, not none"),
        (
            Context(AssertionError("not asked")),
            {"messages": "1", "words": "x"},
            "give either messages or words, not messages and words",
        ),
        (Context(AssertionError("not asked")), {"word": "x"}, "unknown field 'word'; the fields are messages"),
        (Context(AssertionError("not asked")), {"words": ["x"]}, "words must be text, got list"),
        (None, {"messages": "1"}, "has nothing to read back"),
    ],
)
async def test_what_cannot_be_answered_is_no_success_and_says_why(context, given_input, says):
    result = await tool(context).execute(given_input)

    assert not result.success
    assert result.error is not None
    assert says in result.error["message"]
    assert says in result.get_serialized_output(), "the model reads this"
    assert result.get_serialized_output().startswith("Error: ")


@pytest.mark.parametrize("asked_for", [True, False])
async def test_a_shortened_result_says_how_to_read_the_whole_of_it(asked_for):
    """What its mark says is what the tool takes, word for word; without the tool it says nothing of it."""
    settings: dict[str, Any] = {
        "keep_recent": 2,
        "shorten_tool_results": 200,
        "segment_tokens": 8_192,
        "cache": "memory",
    }
    manager = SummarizingContextManager(recall_tool=asked_for, **settings)
    secret = "the code of the gate is 7142"
    long = f"{'a line of the log ' * 400}{secret} {'a line of the log ' * 400}"
    rows = [user("Read the log."), call("c1", "read"), result("c1", long), *tool_session(8)]
    await manager.set_messages(rows)

    view = await manager.get_messages_for_request(6_000, ScriptedProvider())

    [shown] = [row for row in view if row.get("tool_call_id") == "c1"]
    assert "characters left out" in shown["content"]
    assert secret not in shown["content"]
    found = re.search(r'recall\(messages="([^"]+)"\)', shown["content"])
    assert (found is not None) == asked_for
    if found:
        said = await RecallTool(lambda: manager).execute({"words": "code gate 7142"})
        assert secret in str(said.output)
        whole = await RecallTool(lambda: manager).execute({"messages": found[1]})
        assert whole.success
        assert "a line of the log" in str(whole.output)
    await manager.close()
