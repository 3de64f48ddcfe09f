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


@pytest.mark.parametrize("read", [from_openai, from_anthropic])
def test_what_is_no_message_is_refused(read):
    with pytest.raises(MessageError, match="expected a dict or an object of an SDK, got SimpleNamespace"):
        read([SimpleNamespace(role="user")])
    with pytest.raises(MessageError, match="a message needs a role, got the keys id, choices"):
        read([{"id": "1", "choices": [{"message": user("x")}]}])


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


def test_a_file_becomes_its_size_and_text_stays():
    pdf = {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{'QUJD' * 2_000}"}}
    log = {"type": "document", "source": {"type": "text", "data": "one line\n" * 200}}
    [message] = to_openai([user([pdf, log])])
    file, text = (block["text"] for block in message["content"])
    assert "a.pdf" in file
    assert "6,021 bytes" in file
    assert len(file) < 200
    assert text.count("one line") == 200


def test_what_servers_want_back_is_kept_and_calls_of_custom_tools_have_their_input():
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    said = {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [custom]}
    [row] = from_openai([{**said, "metadata": {"critical": True}}])
    assert row["metadata"] == {"critical": True}
    [message] = to_openai([row])
    assert message["reasoning_content"] == "hm"
    assert message["tool_calls"][0]["function"] == {"name": "sh", "arguments": '{"input": "ls"}'}


@pytest.mark.parametrize("given", ["", None])
def test_a_call_without_arguments_has_none(given):
    made = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "tool": "now", "arguments": given}]}
    assert to_openai([made])[0]["tool_calls"][0]["function"]["arguments"] == "{}"
