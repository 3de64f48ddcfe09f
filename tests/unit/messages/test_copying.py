"""Copies share no container with the original."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.messages.copying import copy_json, copy_shaped, shape_of


def containers(value: Any) -> list[Any]:
    """Every dict and list in a value, itself included; tuples are looked into."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    found = [inner for part in parts for inner in containers(part)]
    return [value, *found] if isinstance(value, dict | list) else found


class TestCopyJson:
    def test_dicts_and_lists_are_copied_at_every_depth(self) -> None:
        """Changing a copy changes nothing in the original."""
        value = {"a": [{"b": [1, {"c": 2}]}], "d": "x"}
        copied = copy_json(value)
        assert copied == value
        copied["a"][0]["b"][1]["c"] = 3
        assert value["a"][0]["b"][1]["c"] == 2  # type: ignore[index]
        assert copy_json("x") == "x"

    def test_what_is_inside_a_tuple_is_copied_too(self) -> None:
        """Tuples are kept on the way in, so their dicts must not be shared on the way out."""
        value = {"k": ({"a": 1},)}
        copy_json(value)["k"][0]["a"] = 2
        assert value == {"k": ({"a": 1},)}

    @pytest.mark.parametrize(
        "value",
        [
            {},
            {"a": "x", "n": 1, "none": None},
            {"a": [{"b": [1, {"c": 2}], "d": {}}], "t": ({"x": []},)},
            [1, [2, [3]]],
        ],
    )
    def test_a_copy_by_shape_is_the_same_copy(self, value: Any) -> None:
        """Equal, and no container of it is shared."""
        copied = copy_shaped(value, shape_of(value))
        assert copied == value == copy_json(value)
        ours, theirs = {id(part) for part in containers(value)}, {id(part) for part in containers(copied)}
        assert len(theirs) == len(ours)
        assert not ours & theirs
