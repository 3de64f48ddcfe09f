"""JSON that is equal for equal data, and the same in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from context_summarize.background import Steps, finished
from context_summarize.messages import json_text
from context_summarize.messages.json_text import (
    LARGE,
    compact_json,
    compact_json_steps,
    holds_more,
    json_start,
    saved_json,
    saved_json_steps,
)

TEXTS = st.text(st.characters() | st.sampled_from('"\\\n\x1f\u2028\ud800\udc00😀nul'), max_size=40)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.just("null")
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS, inner, max_size=6)
        | st.dictionaries(st.integers() | st.booleans() | st.none() | TEXTS, inner, max_size=4)
    ),
    max_leaves=20,
)

Made = Callable[[Any], Steps[list[str]]]


@pytest.mark.parametrize(("steps", "whole"), [(compact_json_steps, compact_json), (saved_json_steps, saved_json)])
class TestPieces:
    @given(value=VALUES, large=st.integers(1, 60))
    def test_they_are_the_text_of_the_whole(
        self, steps: Made, whole: Callable[[Any], str], value: Any, large: int
    ) -> None:
        """Whatever the value holds, and wherever it is cut."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_text, "LARGE", large)
            assert "".join(finished(steps(value))) == whole(value)

    @pytest.mark.parametrize(
        "value",
        [
            {"path": "a.txt", "content": 'a "quoted" line\n' * 200_000},
            {"edits": [{"old": "x" * 900, "new": "y" * 900}] * 1_500},
            {str(at): "z" * 1_000 for at in range(3_000)},
            list(range(600_000)),
        ],
    )
    def test_a_large_value_takes_many_short_steps(
        self, steps: Made, whole: Callable[[Any], str], value: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One long text, many of middling length, or many small ones."""
        written: list[int] = []

        def noted(part: Any) -> str:
            written.append(len(text := dumps(part)))
            return text

        expected, dumps = whole(value), partial(json.dumps, ensure_ascii=False, sort_keys=True)
        monkeypatch.setattr(json_text, "_encode", noted)
        assert sum(1 for _ in steps(value)) >= 20
        assert max(written) <= 3 * LARGE
        monkeypatch.undo()
        assert "".join(finished(steps(value))) == expected

    def test_a_value_that_cannot_be_sorted_or_is_too_deep_gives_text_all_the_same(
        self, steps: Made, whole: Callable[[Any], str]
    ) -> None:
        """As the whole does."""
        mixed = {"a": "x" * 2 * LARGE, 5: None}
        deep: Any = "x" * 2 * LARGE
        for _ in range(600):
            deep = [deep]
        for value in (mixed, deep, [mixed, "null"]):
            assert "".join(finished(steps(value))) == whole(value)


def is_json(value: Any) -> bool:
    """True for a value that JSON can hold with sorted keys."""
    try:
        json.dumps(value, sort_keys=True)
    except TypeError:
        return False
    return True


@given(value=VALUES, large=st.integers(1, 60), chars=st.integers(0, 80))
def test_the_start_is_that_of_the_whole(value: Any, large: int, chars: int) -> None:
    """Of every value that JSON can hold."""
    assume(is_json(value))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "LARGE", large)
        assert json_start(value, chars) == compact_json(value)[:chars]


def test_no_more_than_the_start_of_a_large_value_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result names the call that it answers by a line."""
    written: list[int] = []

    def noted(part: Any) -> str:
        written.append(len(text := json.dumps(part, ensure_ascii=False)))
        return text

    monkeypatch.setattr(json_text, "_encode", noted)
    assert json_start({"path": "a.txt", "text": "x" * 20 * LARGE}, 300).startswith('{"path": "a.txt", "text": "xxx')
    assert sum(written) < 2 * LARGE


def test_a_value_is_weighed_by_its_texts_and_items() -> None:
    """At any depth, as far as Python goes."""
    assert holds_more("x" * 11, 10)
    assert not holds_more({"a": ["x" * 5]}, 30)
    assert holds_more({"a": [{"b": "x" * 50}]}, 30)
    assert holds_more([0] * 10, 30)
    nested: list[Any] = []
    nested.append(nested)
    assert not holds_more(nested, 10**6)
