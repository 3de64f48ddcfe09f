"""The public text of contents, and the parts of a rendered row."""

from __future__ import annotations

import pytest

from context_summarize.messages.json_text import compact_json
from context_summarize.messages.rows import NO_RESULT, JsonRow
from context_summarize.messages.text import content_text, render_parts
from context_summarize.testing import assistant, call, result
from tests.unit.messages.shapes import (
    ANTHROPIC_CALL,
    ANTHROPIC_RESULTS,
    LOOP_CALL,
    OPENAI_CALL,
    SIGNED,
    row,
)


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

    def test_json_text_is_the_same_on_every_machine(self) -> None:
        """Keys are sorted; keys that cannot be sorted give text all the same."""
        assert compact_json({"b": 1, "a": [1, "é"]}) == '{"a": [1, "é"], "b": 1}'
        assert compact_json({"a": 1, 5: 2}) == "{'a': 1, 5: 2}"


class TestRenderParts:
    def test_a_call_is_shown_by_name_and_arguments_once(self) -> None:
        """Stored twice, shown once, after the text."""
        assert render_parts(row(LOOP_CALL), {}, ()) == [
            (False, "Let me look."),
            (False, 'call weather({"city": "Oslo"})'),
        ]

    @pytest.mark.parametrize("raw", [OPENAI_CALL, ANTHROPIC_CALL])
    def test_a_call_reads_the_same_in_every_shape(self, raw: JsonRow) -> None:
        """The summariser, and with it the key, does not see how a host stored the call."""
        assert render_parts(row(raw), {}, ()) == [(False, 'call weather({"city": "Oslo"})')]

    def test_an_abandoned_call_is_named(self) -> None:
        """The summariser learns that no result was recorded."""
        found = row(call("a", "weather"))
        assert render_parts(found, {}, found.calls)[-1] == (False, f"[call weather: {NO_RESULT}]")

    def test_results_are_marked_as_such_and_orphans_say_so(self) -> None:
        """Only results are shortened later, so they are told apart."""
        assert render_parts(row(result("a", "21")), {"a": "weather"}, ()) == [(True, "21")]
        assert render_parts(row(result("a", "21")), {}, ()) == [(True, "[result without a call] 21")]
        assert render_parts(row(ANTHROPIC_RESULTS), {"a": "weather"}, ()) == [
            (True, "result of weather: 21 degrees"),
            (True, "[result without a call] rain"),
            (False, "and now?"),
        ]

    def test_thinking_metadata_and_empty_parts_are_left_out(self) -> None:
        """Private reasoning and opaque state never reach the summariser."""
        raw = {
            **assistant([SIGNED, {"type": "text", "text": ""}, {"type": "text", "text": "Done"}]),
            "thinking_block": {"thinking": "private"},
            "metadata": {"openai:reasoning_items": ["rs_2"]},
        }
        assert render_parts(row(raw), {}, ()) == [(False, "Done")]
        assert render_parts(row(assistant(None)), {}, ()) == []

    def test_call_blocks_without_an_id_are_shown_as_text(self) -> None:
        """Nothing is lost by plumbing."""
        raw = assistant([{"type": "tool_call", "name": "f", "input": {"q": 1}}])
        assert '"name": "f"' in render_parts(row(raw), {}, ())[0][1]
