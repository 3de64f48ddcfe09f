"""Summaries without a model: what was asked and concluded, within the tokens that are given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.notes.fallback import FALLBACK_LINE, fallback_text, join_fallbacks
from context_summarize.tokens.counter import TokenCounter
from tests.support.inside import rendered
from tests.support.rows import assistant, call, result, tool_session, user

COUNT = TokenCounter().count
ORDERS = rendered(tool_session(40))


def test_it_tells_what_was_asked_and_what_was_concluded():
    rows = [user("Is the pump\nfine?"), call("a", "read", "I look."), result("a", "a long log")]
    said = rendered([*rows, assistant("The pump leaks."), user("Thanks.")])
    told = ["The user: Is the pump fine?", "The agent: The pump leaks.", "The user: Thanks."]
    assert fallback_text(said, 100, COUNT).split("\n") == [FALLBACK_LINE, *told]


def test_of_a_long_message_whole_sentences_are_quoted():
    """Lines of a list are such too, and words of a result in the user's row are none of the user's."""
    first, last = "Here are the flights, as they are now:", "Which of them shall I book for you?"
    flights = "\n".join(f"- Flight HAT{at:03d} from ATL, departs at {at}:00, costs ${at}00" for at in range(40))
    asked = user([{"type": "tool_result", "tool_use_id": "a", "content": "{}"}])
    said = rendered([call("a", "look"), asked, assistant(f"{first}\n\n{flights}\n\n{last}")])
    [told] = fallback_text(said, 400, COUNT).split("\n")[1:]
    head, tail = told.removeprefix("The agent: ").split(" […] ")
    kept = head.removeprefix(first).strip()
    assert kept
    assert flights.replace("\n", " ").startswith(kept)
    assert kept.endswith("00")
    assert tail.endswith(last)


def test_where_room_is_shorter_the_users_words_stand_first_from_both_ends_inwards():
    text = fallback_text(ORDERS, 200, COUNT)
    assert [f"look up order ORD{at:05d}" in text for at in (0, 20, 39)] == [True, False, True]
    assert "\n[…]\n" in text


def test_a_merge_holds_words_of_the_newest_part_first_and_of_each_where_there_is_room():
    parts = [fallback_text(ORDERS[first : first + 40], 300, COUNT) for first in (0, 40, 80, 120)]
    text = join_fallbacks(parts, 1_200, COUNT)
    assert [f"order ORD{at:05d}" in text for at in (0, 10, 20, 30)] == [True] * 4
    assert text.count(FALLBACK_LINE) == 1
    assert "order ORD00030" in join_fallbacks(parts, 200, COUNT)


TEXTS = st.lists(st.text(max_size=80), max_size=8)
COUNTERS = st.sampled_from([len, lambda text: -(-len(text) // 4), lambda text: len(text.split())])


@given(TEXTS, st.integers(0, 300), COUNTERS)
def test_it_never_takes_more_tokens_than_it_may(said, room, count):
    """However small the room, whatever was said and however tokens are counted."""
    spoken = rendered([(user if at % 2 else assistant)(text) for at, text in enumerate(said)])
    assert count(fallback_text(spoken, room, count)) <= room
    assert count(join_fallbacks(said, room, count)) <= room
