"""Rows in every shape that hosts use, and what tests of them share."""

from __future__ import annotations

from typing import Any

from amplifier_core.message_models import Message

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow, Row
from context_summarize.messages.view_rows import view_row
from context_summarize.testing import assistant, call, hook, user

PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
SIGNED = {"type": "thinking", "thinking": "private", "signature": "sig-1", "content": [None, "rs_2"]}

BLOCK_CALL = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Let me look.", "visibility": None},
        {"type": "tool_call", "id": "a", "name": "weather", "input": {"city": "Oslo"}, "visibility": None},
    ],
}
LOOP_CALL = {
    **BLOCK_CALL,
    "tool_calls": [{"id": "a", "tool": "weather", "arguments": {"city": "Oslo"}}],
    "metadata": {"openai:response_id": "resp_1", "openai:status": "completed"},
}
OPENAI_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}],
}
ANTHROPIC_CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}}],
}
ANTHROPIC_RESULTS = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "21 degrees"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "rain"},
        {"type": "text", "text": "and now?"},
    ],
}

SHAPES: dict[str, dict[Any, Any]] = {
    "user text": user("hello"),
    "user blocks": user([{"type": "text", "text": "see"}, IMAGE]),
    "user image_url": user([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]),
    "user image_url text": user([{"type": "image_url", "image_url": "https://example.com/a.png"}]),
    "user input_text": user([{"type": "input_text", "text": "hello"}]),
    "user unknown block": user([{"type": "novel", "weight": 3}]),
    "user block without type": user([{"text": "hello"}]),
    "user string block": user(["hello", 5, None]),
    "user empty blocks": user([]),
    "user dict content": user({"question": "why?"}),
    "user number content": user(5),
    "user tuple content": user(({"type": "text", "text": "hello"},)),
    "user missing content": {"role": "user"},
    "user broken image": user([{"type": "image"}, {"type": "image_url"}, {"type": "image", "source": {}}]),
    "user broken text": user([{"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": ["a"]}]),
    "user broken result": user([{"type": "tool_result", "content": "whose?"}]),
    "assistant text": assistant("hi"),
    "assistant none": assistant(None),
    "assistant thinking": assistant([SIGNED, {"type": "text", "text": "Done"}]),
    "assistant broken thinking": assistant(
        [{"type": "thinking"}, {"type": "redacted_thinking"}, {"type": "reasoning", "content": None}]
    ),
    "assistant reasoning": assistant(
        [{"type": "reasoning", "content": [], "summary": ["s"]}, {"type": "redacted_thinking", "data": "xx"}]
    ),
    "assistant thinking_block": {**assistant("hi"), "thinking_block": {"type": "thinking", "thinking": "p"}},
    "loop call": LOOP_CALL,
    "openai call": OPENAI_CALL,
    "anthropic call": ANTHROPIC_CALL,
    "broken call blocks": assistant(
        [{"type": "tool_call", "name": "x"}, {"type": "tool_call", "id": "b", "name": None, "input": "not json"}]
    ),
    "call without content": {"role": "assistant", "tool_calls": [{"id": "a", "tool": "x", "arguments": None}]},
    "tool text": {"role": "tool", "tool_call_id": "a", "content": "{'temp_c': 21}"},
    "tool named": {"role": "tool", "name": "weather", "tool_call_id": "a", "content": "{}"},
    "tool dict": {"role": "tool", "tool_call_id": "a", "content": {"temp_c": 21}},
    "tool blocks": {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}, IMAGE]},
    "tool none": {"role": "tool", "tool_call_id": "a", "content": None},
    "tool number id": {"role": "tool", "tool_call_id": 7, "content": "x"},
    "system": {"role": "system", "content": "be brief"},
    "developer": {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
    "function": {"role": "function", "name": "f", "content": "x"},
    "hook": hook("note!"),
    "hook user": hook("note!", "user"),
    "hook assistant with calls": {**call("h"), "metadata": {"source": "hook"}},
    "hook tool": {"role": "tool", "tool_call_id": "h", "content": "x", "metadata": {"source": "hook"}},
    "ephemeral tool": {"role": "tool", "tool_call_id": "h", "content": "x", "ephemeral": True},
    "broken keys": {"role": "user", "content": "x", "name": 5, "tool_call_id": 7, "metadata": [1], 3: 4, None: 5},
    "broken metadata": {"role": "user", "content": "x", "metadata": {1: 2, "a": 3}},
    "keys that are no text in a block": user([{"type": "text", "text": "x", 5: 6}]),
}
"""Every shape that hosts use, and broken ones."""


def row(raw: Any, **options: bool) -> Row:
    return analyse(normalise(raw), **options)


def view(raw: Any, answered: list[str] | None = None) -> JsonRow:
    shown = view_row(row(raw), answered)
    assert shown is not None
    Message(**shown)
    return shown


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def spoil(value: Any) -> None:
    """Change a value in place, wherever that is possible."""
    for item in list(value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()):
        spoil(item)
    if isinstance(value, dict):
        value["spoiled"] = True
    elif isinstance(value, list):
        value.append("spoiled")
