"""Summaries without a model: what was asked and concluded, within the tokens that are given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.notes.fallback import FALLBACK_LINE, fallback_text, join_fallbacks, without_quoted
from context_summarize.tokens.counter import TokenCounter
from tests.support.inside import rendered
from tests.support.rows import assistant, call, result, tool_session, user

COUNT = TokenCounter().count
ORDERS = rendered(tool_session(40))


def test_it_tells_what_was_asked_called_and_concluded():
    rows = [user("Is the pump\nfine?"), call("a", "read", "I look.", path="pump.log"), result("a", "a long log")]
    rows += [call("b", "bash", command="make test"), result("b", "…\n3 passed\n"), assistant("The pump leaks.")]
    told = ["The user: Is the pump fine?", "Call: read pump.log", "Call: bash make test → 3 passed"]
    told += ["The agent: The pump leaks.", "The user: Thanks."]
    assert fallback_text(rendered([*rows, user("Thanks.")]), 100, COUNT).split("\n") == [FALLBACK_LINE, *told]


@pytest.mark.parametrize(("size", "is_shown"), [(110, True), (130, False)])
def test_a_short_argument_and_a_short_result_stand_in_the_line_of_a_call(size, is_shown):
    rows = [call("a", "bash", command="x y" + "z" * size), result("a", "3 " + "p" * size)]
    text = fallback_text(rendered([*rows, call("b", "bash", command="make x y"), result("b", "q" * size)]), 300, COUNT)
    assert ("z" * size in text, "q" * size in text) == (is_shown, is_shown)


def test_of_long_words_both_ends_are_quoted():
    first, last = "Here are the flights, as they are now:", "Which of them shall I book for you?"
    flights = "\n".join(f"- Flight HAT{at:03d} from ATL, departs at {at}:00, costs ${at}00" for at in range(40))
    [told] = fallback_text(rendered([assistant(f"{first}\n\n{flights}\n\n{last}")]), 400, COUNT).split("\n")[1:]
    assert told.startswith(f"The agent: {first}")
    assert " […] " in told
    assert told.endswith(last)


def test_where_room_is_shorter_both_have_their_part_from_both_ends_inwards():
    text = fallback_text(ORDERS, 200, COUNT)
    assert [f"look up order ORD{at:05d}" in text for at in (0, 20, 39)] == [True, False, True]
    assert text.count("The agent: ") > 1
    users = [line for line in fallback_text(ORDERS, 400, COUNT).split("\n") if line.startswith("The user: ")]
    assert 0.2 < COUNT("\n".join(users)) / 400 < 0.4
    assert "\n[…]\n" in text


def test_a_merge_holds_words_of_the_newest_part_first_and_of_each_where_there_is_room():
    parts = [fallback_text(ORDERS[first : first + 40], 300, COUNT) for first in (0, 40, 80, 120)]
    text = join_fallbacks(parts, 1_200, COUNT)
    assert [f"order ORD{at:05d}" in text for at in (0, 10, 20, 30)] == [True] * 4
    assert text.count(FALLBACK_LINE) == 1
    assert "order ORD00030" in join_fallbacks(parts, 300, COUNT)


def test_what_the_thread_holds_of_the_user_is_left_out():
    text = "The user: Use tabs. Not spaces.\nThe agent: Done.\nThe user: Go on."
    assert without_quoted(text, "#1 Use tabs. […] Not spaces.") == "The agent: Done.\nThe user: Go on."
    assert without_quoted("[…]\nThe user: Stop.\n[…]\nCall: think", "Stop.") == "[…]\nCall: think"


TEXTS = st.lists(st.text(max_size=80), max_size=8)
COUNTERS = st.sampled_from([len, lambda text: -(-len(text) // 4), lambda text: len(text.split())])


@given(TEXTS, st.integers(0, 300), COUNTERS)
def test_it_never_takes_more_tokens_than_it_may(said, room, count):
    """However small the room, whatever was said and however tokens are counted."""
    spoken = rendered([(user if at % 2 else assistant)(text) for at, text in enumerate(said)])
    assert count(fallback_text(spoken, room, count)) <= room
    assert count(join_fallbacks(said, room, count)) <= room
