"""What is refused or copied when a host adds a row."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from amplifier_core.message_models import (
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)

from context_summarize.errors import MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import MAX_DEPTH, Call
from context_summarize.messages.view_rows import view_row
from context_summarize.testing import user
from tests.unit.messages.shapes import (
    PNG,
    SHAPES,
    nested,
)


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
            ("hello", "must be a dict, got str"),
            ([("role", "user")], "must be a dict, got list"),
            ({}, "must have a role"),
            ({"content": "x"}, "must have a role"),
            ({"role": None}, "must have a role"),
            ({"role": "robot"}, "unknown role 'robot'; expected one of system, developer"),
            ({"role": "USER"}, "did you mean 'user'?"),
            ({"role": "Assistant"}, "did you mean 'assistant'?"),
            ({"role": ["user"]}, "unknown role"),
            ({"role": 5}, "unknown role of type int"),
            ({"role": "r" * 500}, "unknown role"),
            ({"role": "tool", "content": "x"}, "needs the id of its call in tool_call_id, got None"),
            ({"role": "tool", "tool_call_id": "", "content": "x"}, "tool_call_id, got ''"),
            ({"role": "tool", "tool_call_id": True, "content": "x"}, "tool_call_id, got a bool"),
            ({"role": "tool", "tool_call_id": ["a"], "content": "x"}, "tool_call_id"),
            ({"role": "user", "content": object()}, "message.content is a object, which cannot become JSON"),
            ({"role": "user", "content": b"x"}, "message.content is a bytes"),
            ({"role": "user", "content": {1, 2}}, "message.content is a set"),
            ({"role": "user", "content": "x", "metadata": {"a": {"b": 1j}}}, "message.metadata.a.b is a complex"),
            ({"role": "user", "content": {("a", "b"): 1}}, "message.content has a key of type tuple"),
            ({"role": "user", "content": nested(MAX_DEPTH + 1)}, f"nested deeper than {MAX_DEPTH} levels"),
            ({"role": "user", "content": nested(100_000)}, f"nested deeper than {MAX_DEPTH} levels"),
            ({"role": "user", "content": [10**5000]}, "is an integer of 16610 bits; pass it as a string"),
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

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "user", "content": {10**5000: "x"}},
            {"role": "user", "content": "x", 10**5000: 1},
            {"role": "user", "content": [[[[[{10**5000: "x"}]]]]]},
            {"role": 10**5000, "content": "x"},
            {"role": "tool", "tool_call_id": 10**5000, "content": "x"},
            {"role": "user", "content": [TextBlock]},
            {"role": "user", "content": [TextBlock(text="x", extra=object())]},  # type: ignore[call-arg]
            {"role": "user", "content": [TextBlock(text="x", extra=b"\xff\xfe")]},  # type: ignore[call-arg]
        ],
        ids=["key", "top key", "deep key", "role", "tool id", "class", "block with an object", "block with bytes"],
    )
    def test_odd_values_are_refused_as_message_errors_too(self, message: Any) -> None:
        """Whatever cannot become JSON is refused by us, with a text of ours, never by a stray error."""
        with pytest.raises(MessageError):
            normalise(message)

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
        assert view_row(analyse(normalise(user([ImageBlock(source={"data": PNG})])))) is not None
