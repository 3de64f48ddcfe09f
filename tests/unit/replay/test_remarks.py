"""What is said of a recording whose calls and results do not match."""

from __future__ import annotations

from context_summarize.replay.remarks import remarks_on
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
