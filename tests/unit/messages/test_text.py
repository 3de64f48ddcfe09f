"""The public text of contents, and the parts of a rendered row."""

from __future__ import annotations

import json

from context_summarize.messages.rows import saved_json
from context_summarize.messages.text import content_text, render_parts
from context_summarize.testing import assistant
from tests.unit.messages.shapes import SIGNED, row


class TestText:
    def test_content_text_is_the_public_text_of_every_shape(self) -> None:
        """Thinking is left out, images become a note, data becomes JSON."""
        assert content_text("x") == "x"
        assert content_text(None) == ""
        assert content_text({"b": 1, "a": "ö"}) == '{"a": "ö", "b": 1}'
        assert content_text(5) == "5"
        blocks = [
            SIGNED,
            "plain",
            {"type": "output_text", "text": "said"},
            {"type": "text", "text": ["a", None]},
            {"type": "tool_result", "output": {"t": 1}},
            {"type": "tool_result", "content": "inner"},
            {"type": "novel", "x": 1},
            5,
            {"type": "redacted_thinking", "data": "s"},
            {"type": "reasoning", "content": [], "summary": ["s"]},
        ]
        assert content_text(blocks) == 'plain\nsaid\na\nnull\n{"t": 1}\ninner\n{"type": "novel", "x": 1}\n5'


class TestRenderParts:
    def test_thinking_metadata_and_empty_parts_are_left_out(self) -> None:
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
