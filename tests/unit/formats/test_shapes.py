"""Formats: single shapes, in the words of each API. Whole conversations are in tests/properties."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from context_summarize import MessageError
from context_summarize.formats import from_anthropic, from_openai, to_anthropic, to_openai
from tests.properties.strategies import PNG
from tests.support.rows import assistant, call, result, user

IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
SAID = {"type": "text", "text": "x"}


def blocks_of(*rows):
    """The blocks of the only message."""
    [message] = to_anthropic(rows)["messages"]
    return message["content"]


def test_answers_of_the_sdks_become_rows_without_what_they_leave_open():
    # Here, as they take a second in each process that collects this file.
    import anthropic.types
    import openai.types.chat

    function = {"name": "lookup", "arguments": '{"order": "1"}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    [row] = from_openai([openai.types.chat.ChatCompletionMessage.model_validate(message)])
    assert row == {"role": "assistant", "content": "", "tool_calls": message["tool_calls"]}

    content: list[dict[str, Any]] = [
        {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"order": "1"}},
    ]
    head = {"id": "1", "type": "message", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    answer = anthropic.types.Message.model_validate({**head, "role": "assistant", "content": content})
    [row] = from_anthropic([answer])
    assert row == {"role": "assistant", "content": content}
    assert from_anthropic([{"role": "assistant", "content": answer.content}]) == [row]


def test_a_refusal_is_the_text_of_its_answer():
    assert from_openai([{"role": "assistant", "content": None, "refusal": "No."}]) == [assistant("No.")]


@pytest.mark.parametrize("read", [from_openai, from_anthropic])
def test_what_is_no_message_is_refused(read):
    with pytest.raises(MessageError, match="expected a dict or an object of an SDK, got SimpleNamespace"):
        read([SimpleNamespace(role="user")])


def test_the_system_prompt_stands_apart_and_later_system_rows_keep_their_place():
    rows: list[dict[str, Any]] = [
        {"role": "system", "content": "a"},
        {"role": "developer", "content": [{"type": "text", "text": "b"}]},
    ]
    rows += [user("x"), {"role": "system", "content": "c", "metadata": {"source": "hook"}}, assistant("y")]
    assert to_anthropic(rows) == {
        "system": "a\n\nb",
        "messages": [
            {"role": "user", "content": [SAID, {"type": "text", "text": "c"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "y"}]},
        ],
    }
    assert [message["role"] for message in to_openai(rows)] == ["system", "developer", "user", "system", "assistant"]


def test_parallel_results_are_one_message_and_come_before_a_hooks_row():
    hook = {"role": "system", "content": "careful", "metadata": {"source": "hook"}}
    rows = [user("x"), call("c1"), hook, {**result("c1", "no such file"), "is_error": True}, user("y")]
    last = to_anthropic(rows)["messages"][-1]
    failed = {"type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": True}
    assert last == {
        "role": "user",
        "content": [failed, {"type": "text", "text": "careful"}, {"type": "text", "text": "y"}],
    }


def test_reasoning_goes_to_anthropic_alone_signed_and_with_something_behind_it():
    signed = {"type": "thinking", "thinking": "hm", "signature": "s1g"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    others = [{**signed, "signature": None, "content": [None, "rs_1"]}, {"type": "reasoning", "summary": []}]
    row = {"role": "assistant", "content": [{**signed, "visibility": None}, hidden, *others, SAID]}
    assert to_anthropic([user("x"), row])["messages"][1]["content"] == [signed, hidden, SAID]
    assert to_openai([row]) == [assistant("x")]
    assert to_anthropic([user("x"), {**row, "content": [signed]}, user("y")])["messages"] == [
        {"role": "user", "content": [SAID, {"type": "text", "text": "y"}]}
    ]


def test_results_are_first_also_where_reasoning_between_two_turns_is_left_out():
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s1g"}]}
    blocks = blocks_of(user("x"), thought, result("c1", "y"))
    assert [block["type"] for block in blocks] == ["tool_result", "text"]


def test_images_go_where_each_api_takes_them_and_are_named_elsewhere():
    rows = [user([IMAGE]), call("c1"), {"role": "tool", "tool_call_id": "c1", "content": [IMAGE]}]
    shown, _, answered = to_anthropic(rows)["messages"]
    assert shown["content"] == [IMAGE]
    assert answered["content"][0]["content"] == [IMAGE]
    asked, _, told = to_openai(rows)
    assert asked["content"] == [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]
    assert told["content"] == "[image: image/png, 9 bytes]"
    drawing = {"type": "image", "source": {**IMAGE["source"], "media_type": "image/svg+xml"}}
    assert blocks_of(user([drawing])) == [{"type": "text", "text": "[image: image/svg+xml, 9 bytes]"}]


def test_what_anthropic_refuses_is_left_out_or_mended():
    """Empty texts, an answer that comes first, signs in an id, arguments that are no object, lone surrogates."""
    assert to_anthropic([user(" \n"), user("")]) == {"messages": []}
    assert [message["role"] for message in to_anthropic([assistant("x")])["messages"]] == ["user", "assistant"]
    made = {"role": "assistant", "content": "", "tool_calls": [{"id": "f.a:0", "tool": "a b", "arguments": "{broken"}]}
    asked, used, answered = to_anthropic([user("\ud800"), made, result("f.a:0", "")])["messages"]
    assert asked["content"] == [{"type": "text", "text": "\ufffd"}]
    assert used["content"] == [{"type": "tool_use", "id": "f_a_0", "name": "a_b", "input": {"value": "{broken"}}]
    assert answered["content"] == [{"type": "tool_result", "tool_use_id": "f_a_0"}]


def test_blocks_and_entries_of_one_call_are_one_call_and_cache_breakpoints_are_of_one_request():
    [message] = to_openai([call("c1", "lookup", text="Let me look.", order="1")])
    function = {"name": "lookup", "arguments": '{"order": "1"}'}
    assert message == {
        **assistant("Let me look."),
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    cached = {**SAID, "cache_control": {"type": "ephemeral"}}
    request = {"system": "x", "messages": [user([SAID])]}
    assert to_anthropic(from_anthropic([user([cached])], system=[cached])) == request
