"""The line of a call, written and read back."""

from __future__ import annotations

from context_summarize.transcript.calls import call_line, calls_in, may_be_call, without_calls


def test_a_call_is_read_back_with_its_name_and_arguments() -> None:
    """Whatever stands before and after its line."""
    line = call_line("lookup", '{"q": "a (b)"}')
    assert line == 'call lookup({"q": "a (b)"})'
    assert may_be_call(line)
    assert list(calls_in(f"said\n{line}\nmore")) == [("lookup", '{"q": "a (b)"}')]


def test_lines_that_are_no_calls_are_passed_over() -> None:
    """Prose may begin with the same word."""
    assert list(calls_in("call me later :)\ncall (x)\ncall f(1)\n call g(2)\ncall h(3")) == [("f", "1")]


def test_the_calls_of_one_tool_are_taken_out() -> None:
    """Other lines stay, and so do calls of other tools."""
    text = "said\ncall recall(words)\ncall recaller(x)\ncall f(recall)"
    assert without_calls(text, "recall") == "said\n\ncall recaller(x)\ncall f(recall)"
    assert without_calls("call f(1)", "recall") == "call f(1)"
