"""JSON that is equal for equal data."""

from __future__ import annotations

import json

from context_summarize.messages.json_text import saved_json


def test_what_hosts_do_not_save_is_left_out() -> None:
    """None at every depth; a text that says null stays."""
    given = {"a": None, "b": [None, {"c": None, "d": "null"}], "e": (1, None)}
    assert json.loads(saved_json(given)) == {"b": [{"d": "null"}], "e": [1]}
