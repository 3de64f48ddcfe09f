"""Rows of a view: the host accepts them, whatever was stored."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.messages.rows import JsonRow
from tests.support.rows import user
from tests.unit.messages.shapes import ANTHROPIC_RESULTS, view


def test_a_tool_result_block_gets_the_hosts_keys() -> None:
    """tool_use_id and content become tool_call_id and output."""
    assert view(ANTHROPIC_RESULTS, ["a", "b"])["content"] == [
        {"type": "tool_result", "tool_call_id": "a", "output": [{"type": "text", "text": "21 degrees"}]},
        {"type": "tool_result", "tool_call_id": "b", "output": "rain"},
        {"type": "text", "text": "and now?"},
    ]
    assert view(user([{"type": "tool_result", "tool_use_id": "a"}]), ["a"])["content"][0]["output"] == ""


def test_a_tool_row_of_a_hook_is_shown_as_user_text() -> None:
    """It answers no call, so it may not stand as a result."""
    answer = {"role": "tool", "tool_call_id": "h", "content": "x"}
    marks = {"source": "hook"}
    assert view({**answer, "metadata": marks}) == {**user("x"), "metadata": marks}
    assert view({**answer, "ephemeral": True}) == {**user("x"), "metadata": {}}


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "input_text", "text": "x"}, {"type": "text", "text": "x"}),
        ({"type": "novel", "x": 1}, {"type": "text", "text": '{"type": "novel", "x": 1}'}),
        ("x", {"type": "text", "text": "x"}),
        ({"type": "tool_use", "name": "f"}, {"type": "text", "text": '{"name": "f", "type": "tool_use"}'}),
        ({"type": "tool_result", "content": "r"}, {"type": "text", "text": "r"}),
    ],
)
def test_blocks_that_the_host_does_not_know_are_converted(block: Any, shown: JsonRow) -> None:
    """Everything unknown becomes text; for images see their own tests."""
    assert view(user([block]))["content"] == [shown]


def test_what_cannot_be_mended_is_shown_as_text_calls_and_ids() -> None:
    """Block by block: what the host refuses goes, words, calls and ids stay."""
    broken: dict[Any, Any] = {**user("x"), "name": 5, "tool_call_id": 7, "metadata": [1], 3: 4, None: 5}
    assert view(broken) == {"role": "user", "content": "x", "metadata": {}}
    assert view({**user("x"), "metadata": {1: 2, "a": 3}})["metadata"] == {"1": 2, "a": 3}
    odd = {"type": "text", "text": "said", "visibility": "everybody"}
    said = {"type": "text", "text": "said"}
    assert view(user([odd])) == {"role": "user", "content": [said], "metadata": {}}
    shown = view({"role": "tool", "tool_call_id": "a", "content": [odd]}, ["a"])
    assert shown == {"role": "tool", "tool_call_id": "a", "content": [said], "metadata": {}}
    entries = [{"id": "a", "tool": "f", "arguments": {"q": 1}}, {"id": "b", "tool": "f", "arguments": [1]}]
    made = view({"role": "assistant", "content": [odd], "tool_calls": entries})
    assert made == {"role": "assistant", "content": [said], "tool_calls": entries, "metadata": {}}
