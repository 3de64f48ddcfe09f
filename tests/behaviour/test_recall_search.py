"""What a model finds with `recall` in a session: by a question, in step with every change of the history."""

from __future__ import annotations

from context_summarize import SummarizingContextManager
from context_summarize.recall import RecallAnswer, RecallQuery
from context_summarize.testing import tool_session, user

FACT = user("By the way, the deployment deadline of the tracker is March 15.")


def session() -> SummarizingContextManager:
    return SummarizingContextManager(max_tokens=8_000, recall_tool=True)


async def ask(context: SummarizingContextManager, words: str) -> RecallAnswer:
    return await context.recall(RecallQuery(words=words))


async def test_a_folded_fact_is_found_by_a_question_before_what_the_view_still_shows():
    context = session()
    for row in [FACT, *tool_session(200), user("Is there a deadline for the tracker?")]:
        await context.add_message(row)
    view = await context.get_messages_for_request()

    answer = await ask(context, "When is the tracker's deployment deadline?")

    assert len(view) < 400
    assert answer.messages[0] == 1
    assert str(FACT["content"]) in answer.text


async def test_edits_and_a_cleared_history_are_followed():
    context = session()
    for row in [FACT, *tool_session(5)]:
        await context.add_message(row)
    assert (await ask(context, "deadline")).messages[0] == 1

    await context.set_messages([user("The deadline is April 2."), *tool_session(5)])
    assert "April 2" in (await ask(context, "deadline")).text

    await context.clear()
    await context.add_message(user("Hello"))
    assert (await ask(context, "deadline")).messages == ()
