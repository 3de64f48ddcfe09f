"""What is said of a recording whose calls and results do not match."""

from __future__ import annotations

import json

import pytest

from context_summarize.messages.rows import JsonRow
from context_summarize.replay.remarks import odd_part, remarks_on
from context_summarize.replay.session_files import parse_recording
from context_summarize.testing import assistant, call, calls, result, tool_session, user


def test_a_whole_session_needs_no_remark():
    assert remarks_on(tool_session(3)) == ()


def test_calls_that_were_passed_over_are_counted_and_named():
    rows = [user("a"), calls(("1", "look", {}), ("2", "run", {})), result("1"), user("b"), assistant("c")]

    assert remarks_on(rows) == (
        "1 tool call had no result: run in message 2; the requests hold a result that says so, added by code",
    )


def test_many_calls_are_counted_and_the_first_are_named():
    rows = [row for at in range(5) for row in (user("a"), call(str(at), "look"))] + [user("b")]

    [remark] = remarks_on(rows)

    assert remark.startswith(
        "5 tool calls had no result: look in message 2, look in message 4, look in message 6 and 2"
    )


def test_a_call_at_the_end_may_still_get_its_result():
    assert remarks_on([user("a"), call("1")]) == ()


def test_results_without_a_call_are_counted():
    rows = [user("a"), result("9"), call("1"), result("1"), result("1"), assistant("b")]

    assert remarks_on(rows) == ("2 tool results had no call: summaries read them as text, no request holds them",)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"role": "assistant", "content": "done", "tool_calls": 5}, "tool_calls is a number, not a list"),
        ({"role": "assistant", "content": "", "tool_calls": [{"name": "look"}]}, "an entry of tool_calls is no call"),
        ({"role": "user", "content": 42}, "content is a number, neither text nor a list of blocks"),
        ({"role": "user", "content": {"x": 1}}, "content is an object, neither"),
        ({"role": "user", "content": [{"type": "text"}, 7]}, "a text block has no text"),
        ({"role": "user", "content": ["a", 7]}, "a block of content is a number, not an object with a type"),
    ],
)
def test_a_malformed_message_is_counted_and_the_first_is_named_by_its_line(row, says):
    """In each form of a recording, once for all of them."""
    lines = "\n".join(map(json.dumps, [user("a"), row, row]))

    [told] = parse_recording(lines.encode(), "a", "a").remarks
    [alone] = parse_recording(json.dumps([row]).encode(), "a", "a").remarks

    assert told.startswith(f"2 messages are malformed (the first is a, line 2: {says}")
    assert alone.startswith(f"1 message is malformed (a, message 1: {says}")


def test_shapes_that_hosts_store_are_not_malformed():
    rows: list[JsonRow] = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "tool": "look", "arguments": {}}]},
        {"role": "tool", "tool_call_id": "1", "content": {"found": 3}},
        {"role": "assistant", "content": [{"type": "text", "text": ""}], "tool_calls": None},
        {"role": "user", "content": ["words", {"type": "image_url", "image_url": {"url": "x"}}]},
    ]

    assert [odd_part(row) for row in rows] == [None] * 4
