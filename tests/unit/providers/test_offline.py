"""The offline provider: it answers a request for a summary with a fallback summary, and says so."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest, Message

from context_summarize.providers.offline import OfflineProvider
from context_summarize.tokens.counter import TokenCounter
from tests.support.managed import Managed
from tests.support.rows import tool_session

SAYS_SO = "(Written by code from the transcript: no model was asked.)"
COUNT = TokenCounter().count


async def test_its_summaries_hold_what_code_can_say_within_the_length_that_is_asked_for():
    """What the user asked and the agent concluded, and once that no model wrote it; a merge is joined by code."""
    provider: Any = partial(OfflineProvider, COUNT)
    made = Managed(20_000, provider=provider, segment_tokens=4_096, summary_share=0.02)
    await made.take(tool_session(60, size=4_000))
    await made.view()
    await made.compacted()
    whole = made.store.summaries[:-1]  # the last one is of the short segment at the end
    assert {one.level for one in whole} >= {0, 1}
    for one in whole:
        assert one.text.count(SAYS_SO) == 1
        assert "\nThe user: Please look up order ORD" in one.text
        assert one.level or "\nThe agent: Order ORD" in one.text
        assert "## Summary" not in one.text
        assert one.tokens <= 256 + 2


@pytest.mark.parametrize("said", [["=== transcript 5 ===\nx\n=== transcript 5 ==="], ["a", "b", "c"]])
async def test_anything_else_is_answered_with_what_it_is(said):
    """A fence that is not ours, and a conversation."""
    roles: tuple[Any, ...] = ("system", "user", "assistant", "user")
    messages = [Message(role=role, content=text) for role, text in zip(roles, ["Be brief.", *said], strict=False)]
    request = ChatRequest(messages=messages)
    response = await OfflineProvider(COUNT).complete(request)
    assert response.model_dump()["content"][0]["text"].startswith("This is the offline provider")
