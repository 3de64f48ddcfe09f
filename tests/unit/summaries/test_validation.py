"""Validation: what counts as a summary, and one word for why an answer does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.message_models import ChatResponse, TextBlock, ThinkingBlock, ToolCall, ToolCallBlock

from context_summarize.summaries.answer import answer_text, read_answer
from context_summarize.summaries.validation import refusal, whole_sentences

GOOD = "Goal: find the order.\nState: found, shipped."


def response(*blocks: Any, finish: str | None = "stop", calls: list[ToolCall] | None = None) -> ChatResponse:
    return ChatResponse(content=list(blocks), finish_reason=finish, tool_calls=calls)


def judged(answer: Any, source_tokens: int = 10_000) -> str | None:
    text = answer_text(answer)
    return refusal(read_answer(answer), text, len(text) // 4, source_tokens)


def test_text_blocks_are_joined_and_everything_else_is_left_out() -> None:
    """DESIGN: read text blocks only."""
    found = response(ThinkingBlock(thinking="hm"), TextBlock(text=" one "), TextBlock(text="two\n"))
    assert answer_text(found) == "one \ntwo"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (" plain ", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "thinking", "text": "b"}, {"type": "text", "text": None}], "a"),
        (({"type": "text", "text": "a"},), "a"),
        (None, ""),
        (5, ""),
        ([5, None, "x"], ""),
    ],
)
def test_answers_of_other_shapes_are_read_as_far_as_they_go(content: Any, text: str) -> None:
    """A provider that lies costs nothing but its answer."""
    assert answer_text(SimpleNamespace(content=content)) == text


def test_something_that_is_no_response_holds_no_text() -> None:
    """None, and what has no content."""
    assert answer_text(None) == ""
    assert judged(None) == "empty"


@pytest.mark.parametrize("finish", ["stop", "end_turn", None, "", "STOP"])
def test_a_summary_passes(finish: str | None) -> None:
    """Plain text that ended by itself and is smaller than its source."""
    assert judged(response(TextBlock(text=GOOD), finish=finish)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
    ],
)
def test_an_empty_answer_is_refused(text: str) -> None:
    """Blank is empty, and so is thinking alone."""
    assert judged(response(TextBlock(text=text))) == "empty"
    assert judged(response(ThinkingBlock(thinking="hm"))) == "empty"


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete"])
def test_an_answer_cut_off_by_length_is_refused(finish: str) -> None:
    """Its end is missing, whatever it says; also when nothing but thinking was said."""
    assert judged(response(TextBlock(text=GOOD), finish=finish)) == "cut_off"
    assert judged(response(finish=finish)) == "cut_off"


@pytest.mark.parametrize("finish", ["refusal", "content_filter", "safety", "SAFETY", "blocked"])
def test_an_answer_that_the_provider_calls_refused_is_refused(finish: str) -> None:
    """Said by the finish reason."""
    assert judged(response(TextBlock(text=GOOD), finish=finish)) == "refusal"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m really sorry, no.",
        "Sorry, I cannot do this.",
        "I cannot assist with this request.",
        "I can’t continue.",
        "I am unable to process this transcript.",
        "I won't do that.",
        "As an AI language model, I may not.",
        "**I must decline.**",
        "Unable to comply.",
    ],
)
def test_a_refusal_in_words_is_refused(text: str) -> None:
    """Short, and opening with an excuse."""
    assert judged(response(TextBlock(text=text))) == "refusal"


@pytest.mark.parametrize(
    "text",
    [
        "Error: upstream failed",
        "An error occurred while processing your request.",
        "Internal Server Error",
        "Service unavailable",
        "Traceback (most recent call last):\n  File x",
        "Rate limit exceeded. Try again.",
        "Bad gateway",
        "Gateway Time-out",
        "HTTP 502",
        '{"error": {"code": 500}}',
    ],
)
def test_an_error_text_is_refused(text: str) -> None:
    """Proxies answer errors with status 200."""
    assert judged(response(TextBlock(text=text))) == "error_text"


@pytest.mark.parametrize("opening", ["I cannot say more of the goal.", "Error: E42 in fields.py was the cause."])
def test_a_long_summary_may_open_like_an_excuse_or_an_error(opening: str) -> None:
    """What is long says more than that."""
    assert judged(response(TextBlock(text=opening + " The order was found." * 30))) is None


def test_tool_calls_instead_of_text_are_refused_in_every_shape() -> None:
    """As field, as block, and beside text."""
    made = ToolCall(id="a", name="f", arguments={})
    block = ToolCallBlock(id="a", name="f", input={})
    assert judged(response(TextBlock(text=GOOD), calls=[made])) == "tool_calls"
    assert judged(response(TextBlock(text=GOOD), block)) == "tool_calls"
    assert judged(SimpleNamespace(content=[{"type": "tool_use", "id": "a"}], tool_calls=None)) == "tool_calls"


def test_a_summary_as_long_as_its_source_is_refused() -> None:
    """It must be smaller, not equal."""
    answer = response(TextBlock(text=GOOD))
    size = len(GOOD) // 4
    assert judged(answer, size) == "not_smaller"
    assert judged(answer, size - 1) == "not_smaller"
    assert judged(answer, size + 1) is None


@pytest.mark.parametrize("opening", ["I'm sorry, ", "Error: "])
def test_only_an_answer_of_at_most_400_characters_is_a_refusal_or_an_error_text(opening: str) -> None:
    """A longer one is a summary that opens so."""
    answer = response(TextBlock(text="Goal: done."))
    text = opening.ljust(400, "x")
    assert refusal(read_answer(answer), text, 100, 1_000) is not None
    assert refusal(read_answer(answer), text + "x", 100, 1_000) is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One. Two. Thr", "One. Two."),
        ("One line\nand a ha", "One line"),
        ("no end", ""),
        ("", ""),
        ("完成。还", "完成。"),
        ('He said "go." Then', 'He said "go."'),
        ("v1.2 is out", ""),
    ],
)
def test_a_text_is_cut_after_its_last_whole_sentence(text: str, whole: str) -> None:
    """Or line; nothing is left where there is none."""
    assert whole_sentences(text) == whole
