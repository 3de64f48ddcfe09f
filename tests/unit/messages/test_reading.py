"""What is known of a row, whatever its shape."""

from __future__ import annotations

import pytest

from context_summarize.messages.rows import Call, JsonRow
from context_summarize.testing import assistant, call, hook, result, user
from tests.unit.messages.shapes import ANTHROPIC_CALL, ANTHROPIC_RESULTS, BLOCK_CALL, LOOP_CALL, OPENAI_CALL, row


class TestAnalyse:
    @pytest.mark.parametrize(
        ("raw", "rendered", "is_user", "pinned"),
        [
            (user("x"), True, True, False),
            (assistant("x"), True, False, False),
            ({"role": "function", "name": "f", "content": "x"}, True, False, False),
            ({"role": "system", "content": "x"}, False, False, True),
            ({"role": "developer", "content": "x"}, False, False, True),
            (hook("x"), False, False, False),
            (hook("x", "user"), False, False, False),
            ({**user("x"), "metadata": {"ephemeral": True}}, False, False, False),
            ({**user("x"), "ephemeral": True}, False, False, False),
            ({"role": "system", "content": "x", "ephemeral": True}, False, False, False),
            ({**user("x"), "metadata": {"critical": True}}, True, True, True),
            ({**assistant("x"), "critical": True}, True, False, True),
            ({**hook("x"), "critical": True}, False, False, False),
            ({**user("x"), "critical": True, "ephemeral": True}, False, False, False),
            ({**user("x"), "metadata": {"critical": "yes", "ephemeral": 1}}, True, True, False),
            ({**user("x"), "metadata": None}, True, True, False),
            (ANTHROPIC_RESULTS, True, False, False),
            (result("a"), True, False, False),
        ],
    )
    def test_marks_say_what_is_rendered_a_user_message_or_a_pin(
        self, raw: JsonRow, rendered: bool, is_user: bool, pinned: bool
    ) -> None:
        """System, developer, hook and ephemeral rows are not rendered; hook rows are never pins."""
        found = row(raw)
        assert (found.rendered, found.user, found.pinned) == (rendered, is_user, pinned)

    @pytest.mark.parametrize("raw", [BLOCK_CALL, LOOP_CALL, OPENAI_CALL, ANTHROPIC_CALL])
    def test_calls_are_read_in_all_shapes_and_once(self, raw: JsonRow) -> None:
        """A call that stands as block and in tool_calls is one call; a JSON string is data."""
        assert row(raw).calls == (Call("a", "weather", {"city": "Oslo"}),)

    def test_arguments_that_are_no_json_stay_text_and_none_becomes_empty(self) -> None:
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

    def test_calls_and_results_of_rows_that_are_not_rendered_do_not_count(self) -> None:
        """A hook's row opens no group and answers no call."""
        assert row({**call("a"), "metadata": {"source": "hook"}}).calls == ()
        assert row({**result("a"), "metadata": {"source": "hook"}}).result_ids == ()
        assert row({**call("a"), "role": "user"}).calls == ()
        assert row({**ANTHROPIC_RESULTS, "role": "assistant"}).result_ids == ()
