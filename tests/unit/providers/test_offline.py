"""The offline provider: it answers a request for a summary with a fallback summary, and says so."""

from __future__ import annotations

from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest, Message

from context_summarize.config import Config
from context_summarize.providers.offline import OfflineProvider
from context_summarize.summaries.answer import answer_text
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.jobs import Job, Target
from context_summarize.transcript.escaping import numbered
from context_summarize.transcript.rendered import render_rows
from tests.support.inside import rendered
from tests.support.rows import tool_session
from tests.support.services import services

SAYS_SO = "(Written by code from the transcript: no model was asked.)"


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def transcript(turns: int) -> str:
    return render_rows(rendered(tool_session(turns)))


async def summary_of(text: str, *, level: int = 0, tokens: int = 200) -> str:
    """The answer to a request as the summariser makes it."""
    job = Job("k", level, text, count(text), tokens)
    made = await Summarizer(services(Config(), count)).make(job, Target(OfflineProvider(count), "offline"))
    return made.text


async def test_the_answer_holds_what_code_can_say() -> None:
    """What the user asked and what the agent concluded."""
    text = await summary_of(transcript(4))
    assert "The user: Please look up order ORD00003" in text
    assert "The agent: Order ORD00003 was found" in text


@pytest.mark.parametrize("tokens", [100, 400])
async def test_it_keeps_the_length_that_the_words_ask_for_and_passes_the_gate(tokens: int) -> None:
    """At most 3/4 of a word a token, read back from the instructions."""
    text = await summary_of(transcript(30), tokens=tokens)
    assert SAYS_SO in text
    assert count(text) <= tokens + 2


async def test_summaries_are_joined_and_it_says_so_once() -> None:
    """A merge is joined by code."""
    children = [f"{SAYS_SO}\nGoal {n}: order ORD0000{n} was looked up." for n in range(3)]
    text = await summary_of(numbered(children), level=1)
    assert text.count(SAYS_SO) == 1
    assert [f"Goal {n}" in text for n in range(3)] == [True] * 3
    assert "## Summary" not in text


@pytest.mark.parametrize(
    "rows",
    [
        [("system", "Be brief."), ("user", "=== transcript 5 ===\nx\n=== transcript 5 ===")],
        [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c")],
    ],
    ids=["no fence of ours", "a conversation"],
)
async def test_anything_else_is_answered_with_what_it_is(rows: list[tuple[Any, str]]) -> None:
    """One sentence, whatever the shape of the request."""
    request = ChatRequest(messages=[Message(role=role, content=text) for role, text in rows])
    response = await OfflineProvider(count).complete(request)
    assert answer_text(response).startswith("This is the offline provider")
