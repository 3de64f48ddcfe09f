"""What a host's copy of the history may lack, what makes it another history, and the repair that it brings."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from context_summarize.messages.checking import normalise
from context_summarize.messages.host_copy import repaired
from context_summarize.messages.rows import JsonRow
from tests.properties.strategies import STORED_ROWS
from tests.support.rows import call, hook, user
from tests.support.saved import saved

Rows = list[JsonRow]


SYSTEM: JsonRow = {"role": "system", "content": "Be brief."}
FILES: JsonRow = {"role": "developer", "content": "context file"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": None, "content": [None, "rs_2"]}
CALL = call("c1", "weather", "Let me look.", days=(1, 2), flags={1: True}, at=None)
ANSWER = {**CALL, "content": [THINKING, *CALL["content"]], "thinking_block": {"type": "thinking", "text": "hm"}}
TURN: Rows = [SYSTEM, FILES, ANSWER, hook("from a hook", "user"), user("gone soon", metadata={"ephemeral": True})]


def test_a_host_may_drop_thinking_and_rows_that_it_does_not_save_but_nothing_else():
    """Private reasoning is the provider's; text and calls are the history."""
    answer, *after = saved(TURN)
    thinking, text, made = answer["content"]
    for left in ([answer, *after], [answer], [{**answer, "content": [text, made]}, *after]):
        assert repaired(TURN, left) is TURN
    for content in ([thinking, made], [thinking, text]):
        assert repaired(TURN, [{**answer, "content": content}, *after]) is not TURN
    for theirs in (after, [answer, answer, *after], [answer, *after, user("more")]):
        assert repaired(TURN, theirs) is not TURN


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(STORED_ROWS)
def test_any_history_is_recognised_after_the_host_has_saved_it(rows):
    """And after it has been to our own file and back."""
    rows = [normalise(row) for row in rows]
    assert repaired(rows, rows) is rows
    assert repaired(rows, saved(rows)) is rows
    ours = json.loads(json.dumps(rows))
    assert repaired(ours, rows) is ours


FRESH: JsonRow = {"role": "system", "content": "Be quick."}


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([SYSTEM, FILES, user("a"), SYSTEM], [user("b")], [SYSTEM, FILES, user("b")]),
        ([SYSTEM, user("a")], [FRESH, user("b")], [FRESH, user("b")]),
        ([SYSTEM, FILES, user("a")], [FRESH, user("b")], [FILES, FRESH, user("b")]),
        ([hook("note"), SYSTEM, user("a")], [user("b")], [user("b")]),
        ([SYSTEM], [hook("note"), user("b")], [SYSTEM, hook("note"), user("b")]),
        ([user("a"), SYSTEM], [user("b"), FRESH], [user("b"), FRESH]),
    ],
)
def test_a_repair_is_taken_as_given_after_our_leading_system_rows(ours, theirs, expected):
    """Unless it brings its own of that role; rows of hooks lead nothing."""
    assert repaired([*ours, user("more")], theirs) == expected
