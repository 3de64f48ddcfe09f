"""The texts and images of a row that count as tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_summarize.messages.countable import countable_items
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import assistant, user
from tests.unit.messages.shapes import (
    IMAGE,
    LOOP_CALL,
    OPENAI_CALL,
    SIGNED,
)


def countable(raw: JsonRow) -> tuple[list[str], list[Mapping[str, Any]]]:
    """(texts, image blocks) of a row."""
    items = list(countable_items(raw))
    texts = [item for item in items if isinstance(item, str)]
    return texts, [item for item in items if not isinstance(item, str)]


class TestCountable:
    def test_a_call_that_is_stored_twice_is_counted_once(self) -> None:
        """The provider sends it once."""
        assert countable(LOOP_CALL) == (["Let me look.", "weather", '{"city": "Oslo"}'], [])
        assert countable(OPENAI_CALL) == (["weather", '{"city": "Oslo"}'], [])
        two = {**LOOP_CALL, "tool_calls": [*LOOP_CALL["tool_calls"], {"id": "b", "tool": "f", "arguments": {}}]}
        assert countable(two)[0][-2:] == ["f", "{}"]

    def test_images_are_given_apart_from_texts(self) -> None:
        """An image is charged by its size rules; those inside results too."""
        raw = user([{"type": "text", "text": "see"}, IMAGE, {"type": "tool_result", "content": [IMAGE, "done"]}])
        texts, images = countable(raw)
        assert texts == ["see", "done"]
        assert images == [IMAGE, IMAGE]

    def test_thinking_is_charged_although_it_is_not_shown(self) -> None:
        """Providers replay it."""
        raw = assistant(
            [
                SIGNED,
                {"type": "redacted_thinking", "data": "xx"},
                {"type": "reasoning", "content": ["c"], "summary": []},
                {"type": "tool_result", "output": {"t": 1}},
            ]
        )
        assert countable(raw)[0] == ["private", "xx", '["c"]', '{"t": 1}']

    def test_other_contents_are_counted_as_their_text(self) -> None:
        """Nothing, data and strings."""
        assert countable({"role": "user"}) == ([], [])
        assert countable(user({"a": 1})) == (['{"a": 1}'], [])
        assert countable(user("x")) == (["x"], [])
