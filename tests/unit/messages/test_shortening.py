"""Rows that are too long for a request: what is left of each shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from amplifier_core.message_models import Message

from context_summarize import SummarizingContextManager
from context_summarize.messages.shortening import cut_to_note, shortened_to
from tests.support.rows import assistant, feed, result, user
from tests.unit.messages.shapes import IMAGE, PNG, SIGNED, view

LONG = "many words that say nothing new " * 3_125


async def call_in_a_small_window(call: dict[str, Any]) -> dict[str, Any]:
    """The call as a request shows it that has no room for all of it."""
    manager = SummarizingContextManager(max_tokens=8_000, safety_margin=0)
    await feed(manager, (user("Go."), call, result("c", "Done.")))
    return next(row for row in await manager.get_messages_for_request() if row["role"] == "assistant")


@pytest.mark.parametrize("key", ["text", "name", "id", "type", "tool_call_id"])
async def test_a_long_argument_is_shortened_whatever_its_name(key: str) -> None:
    """Head and tail stay, and the other arguments stay whole."""
    given = {key: LONG, "path": "a.txt"}
    block = {"type": "tool_call", "id": "c", "name": "write", "input": given}
    entry = {"id": "c", "tool": "write", "arguments": given}
    row = await call_in_a_small_window({"role": "assistant", "content": [block], "tool_calls": [entry]})
    for shown in (row["content"][0]["input"], row["tool_calls"][0]["arguments"]):
        assert shown["path"] == "a.txt"
        assert shown[key].startswith("many words")
        assert "characters left out" in shown[key]
        assert len(shown[key]) > 5_000


async def test_arguments_as_json_text_stay_json() -> None:
    """Providers take nothing else."""
    function = {"name": "write", "arguments": json.dumps({"name": LONG, "path": "a.txt"})}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    row = await call_in_a_small_window(call)
    shown = row["tool_calls"][0]["function"]
    assert shown["name"] == "write"
    assert json.loads(shown["arguments"])["path"] == "a.txt"
    assert len(shown["arguments"]) < len(LONG)
    note = json.loads(cut_to_note(call)["tool_calls"][0]["function"]["arguments"])
    assert list(note) == ["left_out"]


@pytest.mark.parametrize("shorten", [cut_to_note, lambda row: shortened_to(row, 0.001, "")])
def test_ids_names_and_signed_blocks_stay_whole(shorten: Any) -> None:
    """The host takes the row as before; an image becomes a word."""
    signed = {**SIGNED, "thinking": LONG}
    block = {"type": "tool_call", "id": "c" * 200, "name": "n" * 200, "input": {"a": [LONG], "b": {"c": LONG}}}
    row = view(assistant([signed, {"type": "text", "text": LONG}, IMAGE, block]))
    short = shorten(row)
    Message(**short)
    assert short["content"][0] == signed
    assert {**short["content"][-1], "input": 0} == {**block, "input": 0}
    rest = short["content"][1:]
    assert len(str(rest)) < 2_000
    assert PNG not in str(rest)
