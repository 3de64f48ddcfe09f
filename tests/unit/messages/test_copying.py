"""Copies share no container with the original."""

from __future__ import annotations

from context_summarize.messages.copying import copy_json


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
