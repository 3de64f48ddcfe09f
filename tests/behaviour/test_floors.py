"""Rows that by themselves exceed the budget: what can be shortened fits, what cannot is named once and left alone."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock

import pytest

from context_summarize.testing import ScriptedProvider, broken_pairs, measure
from tests.support.managed import Managed
from tests.support.rows import assistant, call, result, tool_session, user
from tests.support.views import size

BUDGET = 4_000
LONG = "a long text of many words " * 3_000
"""About 18,000 tokens."""
CRITICAL = [user(f"{at} " + "rule " * 900, metadata={"critical": True}) for at in range(8)]
FITS: dict[str, list[dict[str, Any]]] = {
    "first user message": [user(LONG), *tool_session(4)],
    "sole user message": [user(LONG)],
    "sole user message of many blocks": [user([{"type": "text", "text": "word " * 30}] * 900)],
    "single tool result": [user("read"), call("c", "read", path="x"), result("c", LONG, "read")],
    "critical rows": [user("hi"), *CRITICAL, *tool_session(4)],
    "arguments of a call": [user("write"), call("c", "write", text=LONG), result("c", "ok", "write")],
    "many short arguments": [
        user("write"), call("c", "write", **{f"field_{at}": f"value {at}" for at in range(900)}), result("c", "ok"),
    ],
    "an answer": [user("write"), assistant(LONG)],
    "images": [user([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}] * 9)],
}  # fmt: skip


def session(**given: Any) -> Managed:
    return Managed(BUDGET, provider=ScriptedProvider, segment_tokens=512, **given)


@pytest.mark.parametrize("rows", FITS.values(), ids=FITS)
async def test_what_can_be_shortened_fits(rows):
    made = await session().take(rows)
    view = await made.view()
    assert size(view) <= BUDGET
    assert broken_pairs(view) == []
    assert await made.rows() == rows
    assert made.host.compactions == 1
    assert made.host.count("context-summarize:over_budget") == 0


@pytest.mark.parametrize("factory", [True, False])
async def test_a_system_prompt_that_exceeds_the_budget_is_named_once(factory, caplog):
    """It is never cut: the rest is as small as the rules allow, with one warning and one event that names it."""
    made = session(keep_recent=4)
    if factory:
        await made.manager.set_system_prompt_factory(AsyncMock(return_value=LONG))
    else:
        await made.add([{"role": "system", "content": LONG}])
    for row in tool_session(15, size=300):
        view = await (await made.add([row])).view()
        assert view[0] == {"role": "system", "content": LONG, "metadata": {"shown_by": "context-summarize"}}
        assert broken_pairs(view) == []
    assert made.host.compactions == 60 / 10 * 2
    [event] = made.host.of("context-summarize:over_budget")
    assert event["budget"] == BUDGET < event["tokens"]
    assert event["largest"][0] == {"row": 0, "role": "system", "tokens": measure(view[0])}
    assert len([record for record in caplog.records if "does not fit" in record.getMessage()]) == 1


async def test_above_the_threshold_but_within_the_budget_a_floor_is_left_alone():
    made = await session(keep_recent=2).take([{"role": "system", "content": "word " * 3_000}, user("hi")])
    for at in range(20):
        await (await made.add([assistant(f"note {at}")])).view()
    assert made.host.events == []


def wordy(request: Any) -> str:
    """An answer twice as long as what was asked about."""
    return str(request.messages[-1].content) * 2


@pytest.mark.parametrize(
    "says", ["Goal: orders.", wordy, "", ConnectionError("down")], ids=["good", "wordy", "empty", "down"]
)
async def test_no_compaction_leaves_a_larger_view_than_it_found(says):
    """Users of another system saw 707,000 tokens become 734,000."""
    made = Managed(BUDGET, provider=lambda: ScriptedProvider(then=says), keep_recent=4, segment_tokens=512)
    for row in tool_session(25, size=500):
        await (await made.add([row])).view()
    assert made.host.compactions
    assert all(data["after_tokens"] < data["before_tokens"] for data in made.host.of("context:compaction"))
