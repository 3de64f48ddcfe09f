"""What is refused or copied when a host adds a row."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from amplifier_core.message_models import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

from context_summarize.errors import MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import MAX_DEPTH, Call
from tests.unit.messages.shapes import SHAPES, nested


class TestNormalise:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_shape_is_kept_deep_equal_and_apart(self, shape: str) -> None:
        """What is kept equals what was given, and shares no dict or list with it."""
        given = copy.deepcopy(SHAPES[shape])
        kept = normalise(given)
        assert kept == given
        assert kept is not given
        if isinstance(given.get("content"), list) and given["content"]:
            assert kept["content"] is not given["content"]
            given["content"].clear()
            assert kept == SHAPES[shape]

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (None, "must be a dict, got NoneType"),
            ([("role", "user")], "must be a dict, got list"),
            ({}, "must have a role"),
            ({"role": "robot"}, "unknown role 'robot'; expected one of system, developer"),
            ({"role": "USER"}, "did you mean 'user'?"),
            ({"role": ["user"]}, "unknown role"),
            ({"role": "r" * 500}, "unknown role"),
            ({"role": "tool", "content": "x"}, "needs the id of its call in tool_call_id, got None"),
            ({"role": "tool", "tool_call_id": "", "content": "x"}, "tool_call_id, got ''"),
            ({"role": "tool", "tool_call_id": True, "content": "x"}, "tool_call_id, got a bool"),
            ({"role": "tool", "tool_call_id": ["a"], "content": "x"}, "tool_call_id"),
            ({"role": "user", "content": object()}, "message.content is a object, which cannot become JSON"),
            ({"role": "user", "content": {1, 2}}, "message.content is a set"),
            ({"role": "user", "content": "x", "metadata": {"a": {"b": 1j}}}, "message.metadata.a.b is a complex"),
            ({"role": "user", "content": {("a", "b"): 1}}, "message.content has a key of type tuple"),
            ({"role": "user", "content": nested(MAX_DEPTH + 1)}, f"nested deeper than {MAX_DEPTH} levels"),
            ({"role": "user", "content": nested(100_000)}, f"nested deeper than {MAX_DEPTH} levels"),
            ({"role": "user", "content": [10**5000]}, "is an integer of 16610 bits; pass it as a string"),
            ({"role": "user", "content": {10**5000: "x"}}, "a key of message.content is an integer"),
            ({"role": 10**5000, "content": "x"}, "unknown role of type int"),
            ({"role": "tool", "tool_call_id": 10**5000, "content": "x"}, "tool_call_id, got a int"),
            ({"role": "user", "content": [TextBlock]}, "cannot become JSON"),
            ({"role": "user", "content": [TextBlock(text="x", extra=object())]}, "cannot become JSON"),  # type: ignore[call-arg]
        ],
    )
    def test_what_cannot_be_kept_is_refused_with_its_reason(self, message: Any, text: str) -> None:
        """A refusal is a ValueError that says what was seen."""
        with pytest.raises(MessageError) as refused:
            normalise(message)
        assert text in str(refused.value)
        assert isinstance(refused.value, ValueError)
        assert len(str(refused.value)) < 300

    def test_a_row_that_holds_itself_is_refused(self) -> None:
        """Self-reference ends in an error, not in a crash."""
        content: list[Any] = []
        content.append(content)
        message: dict[str, Any] = {"role": "user", "content": "x"}
        message["metadata"] = {"self": message}
        for bad in ({"role": "user", "content": content}, message):
            with pytest.raises(MessageError, match="nested deeper"):
                normalise(bad)

    def test_pydantic_blocks_become_dicts(self) -> None:
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
