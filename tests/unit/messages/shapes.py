"""Rows in every shape that hosts use, and what tests of them share."""

from __future__ import annotations

from typing import Any

from amplifier_core.message_models import Message

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow, Row
from context_summarize.messages.view_rows import view_row

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


def row(raw: Any, **options: bool) -> Row:
    return analyse(normalise(raw), **options)


def view(raw: Any, answered: list[str] | None = None) -> JsonRow:
    shown = view_row(row(raw), answered)
    assert shown is not None
    Message(**shown)
    return shown
