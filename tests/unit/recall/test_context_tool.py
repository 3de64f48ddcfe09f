"""The context tool: what it takes, what it refuses, and what it does to a real session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import mount
from context_summarize.recall.tools import ContextTool, mount_steering
from context_summarize.testing import ScriptedProvider
from tests.support.rows import feed, tool_session


class Offers:
    """Capabilities that answer from a table and record their calls."""

    def __init__(self, **answers: Any) -> None:
        statistics = SimpleNamespace(view_tokens=20_000, budget=40_000, summaries=0, fallbacks=0, compactions=2)
        self.answers = {"statistics": statistics, **answers}
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def __call__(self, name: str) -> Any:
        async def work(*arguments: Any) -> Any:
            self.asked.append((name, arguments))
            return self.answers[name.removeprefix("context.")]

        return work


async def said(offers: Any, **given: Any) -> str:
    result = await ContextTool(offers).execute(given)
    assert result.success, result.output
    return str(result.output)


async def refused(offers: Any, given: Any) -> str:
    result = await ContextTool(offers).execute(given)
    assert not result.success
    assert result.error is not None
    assert str(result.output) == f"Error: {result.error['message']}", "the model reads this"
    return str(result.output)


# --- what it takes ----------------------------------------------------------------------------------------------------


async def test_numbers_are_read_as_people_and_models_write_them():
    for messages, numbers in (
        ("12", [12]),
        ("3, 7-9", [3, 7, 8, 9]),
        ("#3 and 5 to 6", [3, 5, 6]),
        ([3, "5-6"], [3, 5, 6]),
    ):
        offers = Offers(pin=tuple(numbers))
        assert await said(offers, action="pin", messages=messages)
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
async def test_what_cannot_be_done_is_refused_and_nothing_is_asked(given_input, says):
    offers = Offers(compact=1, undo=1, pin=(), unpin=())

    assert says in await refused(offers, given_input)
    assert offers.asked == []


async def test_fallbacks_are_counted_where_there_are_any():
    """Summaries that the offline provider has made by code are none, so nothing is said of those by code."""
    offers = Offers(preview=SimpleNamespace(messages=()))
    offers.answers["statistics"].summaries = 3
    assert "3 summaries stand for older messages; 2 compactions so far." in await said(offers, action="status")
    offers.answers["statistics"].fallbacks = 1
    assert "older messages, 1 fallback among them; 2 compactions so far." in await said(offers, action="status")


# --- in a session -----------------------------------------------------------------------------------------------------


async def test_a_user_steers_a_session_through_the_model():
    """Status, a compaction that keeps what was named, its undo, and pins, on a real manager."""
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
    assert (await asked(action="pin", messages="1")).startswith("Pinned message: 1. ")
    assert "there is no message 400 to pin" in await asked(action="pin", messages="400")
    assert await asked(action="unpin") == "No message is pinned."
    await cleanup()
