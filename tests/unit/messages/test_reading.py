"""What is known of a row, whatever its shape: marks, calls, results, and its public text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from amplifier_core.message_models import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call, JsonRow, saved_json
from context_summarize.messages.text import content_text, render_parts
from tests.support.rows import assistant, call, hook, result, user
from tests.unit.messages.shapes import (
    ANTHROPIC_CALL,
    ANTHROPIC_RESULTS,
    BLOCK_CALL,
    LOOP_CALL,
    OPENAI_CALL,
    SIGNED,
    row,
)


def test_pydantic_blocks_become_dicts() -> None:
    """Host code hands over blocks of the host's models."""
    kept = normalise(
        {
            "role": "assistant",
            "content": [
                TextBlock(text="Let me look."),
                ThinkingBlock(thinking="p", signature="s"),
                ToolCallBlock(id="a", name="weather", input={"city": "Oslo"}),
            ],
        }
    )
    assert [block["type"] for block in kept["content"]] == ["text", "thinking", "tool_call"]
    assert all(type(block) is dict for block in kept["content"])
    assert kept["content"][2]["input"] == {"city": "Oslo"}
    assert analyse(kept).calls == (Call("a", "weather", {"city": "Oslo"}),)
    answered = normalise({"role": "user", "content": [ToolResultBlock(tool_call_id="a", output={"t": 21})]})
    assert analyse(answered).result_ids == ("a",)


@pytest.mark.parametrize(
    ("raw", "rendered", "is_user", "pinned"),
    [
        (user("x"), True, True, False),
        (assistant("x"), True, False, False),
        ({"role": "function", "name": "f", "content": "x"}, True, False, False),
        ({"role": "system", "content": "x"}, False, False, True),
        (hook("x", "user"), False, False, False),
        ({**user("x"), "metadata": {"ephemeral": True}}, False, False, False),
        ({"role": "system", "content": "x", "ephemeral": True}, False, False, False),
        ({**user("x"), "metadata": {"critical": True}}, True, True, True),
        ({**hook("x"), "critical": True}, False, False, False),
        ({**user("x"), "critical": True, "ephemeral": True}, False, False, False),
        ({**user("x"), "metadata": {"critical": "yes", "ephemeral": 1}}, True, True, False),
        ({**user("x"), "metadata": {"amplifier:instruction": {}}}, False, False, True),
        ({**user("x"), "metadata": {"amplifier:instruction": {"disposition": "retired"}}}, False, False, False),
        ({**ANTHROPIC_RESULTS, "metadata": {"amplifier:instruction": {}}}, True, False, False),
        (ANTHROPIC_RESULTS, True, False, False),
        (result("a"), True, False, False),
    ],
)
def test_marks_say_what_is_rendered_a_user_message_or_a_pin(
    raw: JsonRow, rendered: bool, is_user: bool, pinned: bool
) -> None:
    """System, developer, hook and ephemeral rows are not rendered; hook rows are never pins."""
    found = row(raw)
    assert (found.rendered, found.user, found.pinned) == (rendered, is_user, pinned)


@pytest.mark.parametrize("raw", [BLOCK_CALL, LOOP_CALL, OPENAI_CALL, ANTHROPIC_CALL])
def test_calls_are_read_in_all_shapes_and_once(raw: JsonRow) -> None:
    """A call that stands as block and in tool_calls is one call; a JSON string is data."""
    assert row(raw).calls == (Call("a", "weather", {"city": "Oslo"}),)


def test_arguments_that_are_no_json_stay_text_and_none_becomes_empty() -> None:
    """What the model wrote is kept as it is."""
    entries = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
        {"id": "b", "type": "function", "function": {"name": None}},
        {"id": "c", "tool": "f", "arguments": "[" * 100_000},
    ]
    found = row({"role": "assistant", "content": "", "tool_calls": entries}).calls
    assert found[0].arguments == "{broken"
    assert (found[1].name, found[1].arguments) == ("", {})
    assert found[2].arguments == "[" * 100_000


def test_calls_and_results_of_rows_that_are_not_rendered_do_not_count() -> None:
    """A hook's row opens no group and answers no call."""
    assert row({**call("a"), "metadata": {"source": "hook"}}).calls == ()
    assert row({**result("a"), "metadata": {"source": "hook"}}).result_ids == ()
    assert row({**call("a"), "role": "user"}).calls == ()
    assert row({**ANTHROPIC_RESULTS, "role": "assistant"}).result_ids == ()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        (None, ""),
        ({"b": 1, "a": "ö"}, '{"a": "ö", "b": 1}'),
        (5, "5"),
        ([SIGNED, {"type": "redacted_thinking", "data": "s"}, {"type": "reasoning", "summary": ["s"]}], ""),
        (["plain", {"type": "output_text", "text": "said"}, 5], "plain\nsaid\n5"),
        ([{"type": "text", "text": ["a", None]}], "a\nnull"),
        ([{"type": "tool_result", "output": {"t": 1}}, {"type": "tool_result", "content": "inner"}], '{"t": 1}\ninner'),
        ([{"type": "novel", "x": 1}], '{"type": "novel", "x": 1}'),
    ],
)
def test_content_text_is_the_public_text_of_every_shape(content: Any, text: str) -> None:
    """Thinking is left out, images become a note, data becomes JSON."""
    assert content_text(content) == text


def test_thinking_metadata_and_empty_parts_are_left_out() -> None:
    """Private reasoning and opaque state never reach the summariser."""
    raw = {
        **assistant([SIGNED, {"type": "text", "text": ""}, {"type": "text", "text": "Done"}]),
        "thinking_block": {"thinking": "private"},
        "metadata": {"openai:reasoning_items": ["rs_2"]},
    }
    assert render_parts(row(raw), {}, ()) == [(False, "Done")]
    assert render_parts(row(assistant(None)), {}, ()) == []


def test_what_hosts_do_not_save_is_left_out_of_json() -> None:
    """None at every depth; a text that says null stays."""
    given = {"a": None, "b": [None, {"c": None, "d": "null"}], "e": (1, None)}
    assert json.loads(saved_json(given)) == {"b": [{"d": "null"}], "e": [1]}
