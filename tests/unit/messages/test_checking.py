"""What is refused or copied when a host adds a row."""

from __future__ import annotations

from amplifier_core.message_models import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call


class TestNormalise:
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
