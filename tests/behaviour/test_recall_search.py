"""What a model finds with `recall` in a session: by a question, in step with every change of the history."""

from __future__ import annotations

from context_summarize import SummarizingContextManager
from context_summarize.recall import RecallAnswer, RecallQuery
from tests.support.rows import feed, tool_session, user


async def ask(context: SummarizingContextManager, words: str) -> RecallAnswer:
    return await context.recall(RecallQuery(words=words))


async def test_edits_and_a_cleared_history_are_followed():
    fact = user("By the way, the deployment deadline of the tracker is March 15.")
    context = await feed(SummarizingContextManager(max_tokens=8_000, recall_tool=True), [fact, *tool_session(5)])
    found = await ask(context, "deadline")
    assert found.messages[0] == 1
    assert " of 21 messages contain some of these words, or are next to one that does; " in found.text

    await context.set_messages([user("The deadline is April 2."), *tool_session(5)])
    assert "April 2" in (await ask(context, "deadline")).text

    await context.clear()
    await context.add_message(user("Hello"))
    assert (await ask(context, "deadline")).messages == ()
    await context.close()
