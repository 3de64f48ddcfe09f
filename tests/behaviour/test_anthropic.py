"""Sessions with an API that keeps Anthropic's rules: it refuses none of their requests, and its cache lasts."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.testing import JsonRow, MemoryStore
from tests.support.anthropic_api import Api, Refused
from tests.support.effort import full
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import assistant, result, user
from tests.support.views import nodes, untimed

PROMPT = {"role": "system", "content": "You look up orders."}
BODY = "weight 31 kg, state shipped, stop "
SETTINGS: dict[str, Any] = {"segment_tokens": 512}
STEPS = full(440, 180)
"""Requests of a long session."""


def answered(signature: str, at: int, *ids: str) -> JsonRow:
    """An assistant row as hosts store it: with signed thinking, its exact turn in the metadata, and these calls."""
    thinking = {"type": "thinking", "thinking": f"I think of order {at}. " * 4, "signature": signature}
    if at % 7 == 3:
        thinking = {"type": "redacted_thinking", "data": signature}
    said = {"type": "text", "text": f"Step {at}: let me look."}
    made = [{"id": id_, "name": "lookup", "input": {"order": f"ORD{at:05d}"}} for id_ in ids]
    row: JsonRow = {
        "role": "assistant",
        "content": [thinking, said, *({"type": "tool_call", **call} for call in made)],
        "thinking_block": thinking,
        "metadata": {"anthropic": {"wire_content": [thinking, said, *({"type": "tool_use", **call} for call in made)]}},
    }
    entries = [{"id": call["id"], "tool": call["name"], "arguments": call["input"]} for call in made]
    return {**row, "tool_calls": entries} if made else row


async def play(made: Managed, api: Api, first: int, end: int) -> None:
    """An agent that makes six steps for each message of the user, one or two calls in each."""
    for at in range(first, end):
        if at % 7 == 0:
            await made.add([user(f"Please look up order ORD{at:05d} and tell me its state.")])
        await made.manager.settle()
        signature = api.send(await made.view())
        ids = [] if at % 7 == 6 else [f"call_{at}_{number}" for number in range(1 + at % 2)]
        await made.add([answered(signature, at, *ids), *(result(id_, f"{id_} {BODY * (at % 5 + 1)}") for id_ in ids)])


def thoughts(view: list[JsonRow]) -> list[int]:
    """The rows of a view with thinking, wherever it is in them."""
    return [at for at, row in enumerate(view) if "thinking" in str(row)]


async def session(requests: int, **more: Any) -> tuple[Managed, Api]:
    """A session of so many requests, and its API."""
    made, api = Managed(12_000, **SETTINGS, **more), Api()
    await made.add([PROMPT])
    await play(made, api, 0, requests)
    return made, api


async def compactions(made: Managed) -> int:
    """How many this process has made."""
    return (await made.manager.statistics()).compactions


@pytest.mark.parametrize("role", ["system", "user"])
async def test_a_long_session_sends_no_stale_thinking_has_breakpoints_and_loses_the_cache_to_compactions_alone(role):
    made, api = await session(STEPS, summary_role=role)

    assert await compactions(made) >= full(5, 2)
    assert (api.requests, api.stale, api.unmarked, api.lost) == (STEPS, 0, 0, 0)
    assert thoughts(await made.view()), "what came after the last compaction stays"
    assert len(thoughts(await made.rows())) == STEPS, "and so does all in the history"


async def test_after_an_undo_no_thinking_is_stale():
    made, api = await session(120)
    assert await made.manager.undo() > 0
    await play(made, api, 120, 124)
    assert api.stale == 0


async def test_a_resumed_session_goes_on_with_the_thinking_that_its_provider_knows():
    made, api = await session(120, host=Recorder(session_id="s1"))
    before = await made.view()
    again = await made.again()
    assert await again.view() == before
    assert thoughts(before)
    await play(again, api, 120, 130)
    assert (api.stale, api.lost) == (0, 0)


@pytest.mark.parametrize("changed", ["text", "role"])
async def test_a_resumed_view_whose_summaries_are_others_has_no_thinking(changed):
    """Its provider never got it: a text is gone and a fallback takes its place; or `summary_role` is another one."""
    made, api = await session(120, host=Recorder(session_id="s1"), store=Forgetful())
    made.store.forgets = changed == "text"
    made.settings |= {"summary_role": "user"} if changed == "role" else {}
    again = await made.again()
    view = await again.view()
    assert nodes(view)
    assert thoughts(view) == []
    await play(again, api, 120, 130)
    later = await again.again()
    assert len(thoughts(await later.view())) == 10, "the next process knows what this one has sent"
    await play(later, api, 130, 140)
    assert api.stale == 0


class Forgetful(MemoryStore):
    """A store that may lose its summaries."""

    forgets = False

    async def get(self, keys: Any) -> Any:
        return {} if self.forgets else await super().get(keys)


@pytest.mark.parametrize("drops", [False, True])
async def test_thinking_in_a_turn_that_is_open_at_a_compaction_stays_until_the_next_one(drops):
    """The API then refuses the next request or, as provider-anthropic asks it to, drops that block."""
    made, api = await session(20)
    made.budget, api.drops = 100_000, drops
    signature = api.send(await made.view())
    await made.add([answered(signature, 1, "open_1", "open_2"), result("open_1")])
    await made.manager.compact()
    held = [row for row in await made.view() if row["role"] == "assistant"][-1]
    assert held["content"][0]["signature"] == held["thinking_block"]["signature"] == signature
    await made.add([result("open_2")])
    assert held in await made.view(), "it does not change later"
    if drops:
        api.send(await made.view())
    else:
        with pytest.raises(Refused, match="bound to a different conversation"):
            api.send(await made.view())
    assert api.stale == 1
    await made.manager.undo()
    api.send(await made.view())
    assert api.stale == 1


async def test_only_thinking_is_left_out():
    """A row of nothing else goes; a call's arguments stay, and so do other blocks and marks."""
    thinking, data = {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "thinking", "thinking": "mine"}
    write = {"id": "c", "tool": "write", "arguments": {"body": [data]}}
    block = {"type": "tool_call", "id": "c", "name": "write", "input": {"body": [data]}}
    marks = {
        "anthropic": {"wire_content": [thinking, block], "thinking_binding": "drop_block"},
        "openai:response_id": "r",
    }
    writes = {"role": "assistant", "content": [thinking, block], "tool_calls": [write], "metadata": marks}
    alone = {**assistant([thinking]), "content_blocks": [thinking]}
    spoken = {**assistant("Done."), "thinking_block": thinking, "thinking_text": "hm"}
    made, _ = await session(20)
    await made.add(
        [user("Write it."), writes, result("c"), alone, {**assistant(""), "thinking_block": thinking}, spoken]
    )
    view = untimed(await made.compacted())
    kept = {"anthropic": {"wire_content": [block], "thinking_binding": "drop_block"}}
    assert view[-4:] == [
        user("Write it."),
        {**writes, "content": [block], "metadata": kept},
        result("c"),
        assistant("Done."),
    ]


async def test_rows_without_marks_have_breakpoints_too():
    """At the first request and after each compaction; the history keeps the rows as they came."""
    made, api = Managed(6_000, keep_recent=4, **SETTINGS), Api()
    rows = [user("Find the orders."), assistant("I look."), user("Go on.")]
    rows += [row for at in range(40) for row in (assistant(f"{at} {BODY * 20}"), user(f"{at} go on"))]
    for at, row in enumerate(rows):
        await made.add([row])
        if row["role"] == "user":
            await made.manager.settle()
            view = await made.view()
            assert all(shown["metadata"]["shown_by"] == "context-summarize" for shown in view), at
            api.send(view)
    assert await compactions(made) > 1
    assert api.unmarked == 0
    assert [{**row, "metadata": {}} for row in await made.rows()] == [{**row, "metadata": {}} for row in rows]


@pytest.mark.parametrize("role", ["system", "user"])
async def test_rows_of_ours_say_that_they_last_but_not_reminders_that_change(role):
    """A provider then keeps what precedes them out of no cache."""
    made, texts = Managed(6_000, summary_role=role, keep_recent=4, **SETTINGS), iter(range(100))
    reminder = "<system-reminder>It is {}.</system-reminder>"

    async def prompt() -> str:
        return f"Be kind. {reminder.format(next(texts))}"

    await made.manager.set_system_prompt_factory(prompt)
    await made.add([assistant("Hello."), *(user(f"{at} {BODY * 20}") for at in range(40))])
    await made.view()
    view = await made.compacted()
    ours = [row for row in view if row["metadata"].get("source") == "context-summarize"]
    assert len(ours) > 3
    assert [row["metadata"].get("persisted") for row in ours] == [*[True] * (len(ours) - 1), None]
    assert all(row["metadata"]["ephemeral"] for row in ours)
    assert ours[-1]["content"].startswith("<system-reminder>")
