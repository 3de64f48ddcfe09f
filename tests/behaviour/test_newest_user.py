"""Where the newest user message stands once it is summarised: it is what the agent works on."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.testing import JsonRow
from tests.support.managed import Managed
from tests.support.rows import assistant, call, result, tool_session, user
from tests.support.views import nodes, notes

ASKED = "Now book order ORD00777, please."
SETTINGS: dict[str, Any] = {"segment_tokens": 256, "keep_recent": 4, "prefetch": False}


def work(steps: int, first: int = 0) -> list[JsonRow]:
    """What an agent does on its own: calls, and now and then a word."""
    rows: list[JsonRow] = []
    for at in range(first, first + steps):
        rows += [
            call(f"w{at}", "book", step=at),
            result(f"w{at}", f"step {at} " * 30, "book"),
            assistant(f"Step {at}."),
        ]
    return rows


def place(view: list[JsonRow], text: str) -> int:
    [at] = [at for at, row in enumerate(view) if row["content"] == text]
    return at


@pytest.mark.parametrize("role", ["system", "user"])
async def test_it_follows_the_notes_right_before_the_verbatim_part(role):
    made = await Managed(100_000, summary_role=role, **SETTINGS).add([*tool_session(12), user(ASKED), *work(20)])
    await made.view()
    view = await made.compacted()
    asked, told = place(view, ASKED), notes(view)
    assert nodes(view)[-1]["metadata"]["messages"][1] > 12 * 4 + 1, "its own range is summarised"
    assert told is not None
    assert view[asked - 1] == told
    assert nodes(view[asked + 1 :]) == []
    assert place(view, tool_session(1)[0]["content"]) == 0
    await made.add(work(2, 20))
    assert (await made.view())[: len(view)] == view


async def test_at_the_next_compaction_a_newer_one_takes_its_place():
    made = await Managed(100_000, **SETTINGS).add([*tool_session(12), user(ASKED), *work(20)])
    await made.view()
    await made.compacted()
    await made.add([user("And cancel the rest."), *work(20, 20)])
    view = await made.compacted()
    assert ASKED not in [row["content"] for row in view]
    assert view[place(view, "And cancel the rest.") - 1] == notes(view)


async def test_pins_and_reminders_stand_before_it_or_after_it_as_they_came():
    """Earlier pins are before their summary, later ones after it; retained reminders are right before it."""
    reminder = user("<system-reminder>RULE</system-reminder>", metadata={"ephemeral": True, "persisted": True})
    made = Managed(100_000, **SETTINGS)
    await made.add([*tool_session(12), reminder, user(ASKED), *work(20)])
    await made.view()
    await made.manager.pin([5, 53])
    await made.manager.compact()
    view = await made.manager.request_retention(retain_contents=[reminder["content"]], provider=made.provider)
    asked, pinned = place(view, ASKED), [at for at, row in enumerate(view) if row["content"] == "Step 0."]
    assert place(view, tool_session(2)[4]["content"]) < view.index(nodes(view)[-1])
    assert pinned == [asked + 1]
    assert view[asked - 2] == notes(view)
    assert view[asked - 1]["content"] == reminder["content"]
