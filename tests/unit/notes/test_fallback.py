"""Summaries without a model: what was asked and concluded, within the tokens that are given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.notes.fallback import FALLBACK_LINE, fallback_text, join_fallbacks
from context_summarize.tokens.counter import TokenCounter
from context_summarize.transcript.rendered import RenderedRow

COUNT = TokenCounter().count
LONG = "we looked at it again and it is as it was " * 20


def rows(*said: tuple[str, str]) -> list[RenderedRow]:
    return [RenderedRow(at, role, None, text) for at, (role, text) in enumerate(said, 1)]


def turns(count: int) -> list[RenderedRow]:
    """Turns of a user who names a place, each with a call, a result and a long answer."""
    return rows(
        *(
            row
            for at in range(count)
            for row in (
                ("user", f"What about place {at}? {LONG}"),
                ("assistant", f'call look({{"place": {at}}})'),
                ("tool", f"result {at}"),
                ("assistant", f"Place {at} is open. {LONG}"),
            )
        )
    )


def test_it_tells_what_was_asked_and_what_was_concluded():
    said = rows(
        ("user", "Is the pump\nfine?"),
        ("assistant", 'I look.\ncall read({"path": "a"})'),
        ("tool", "a long log"),
        ("assistant", "The pump leaks."),
        ("user", "Thanks."),
    )

    told = ["The user: Is the pump fine?", "The agent: The pump leaks.", "The user: Thanks."]
    assert fallback_text(said, 100, COUNT).split("\n") == [FALLBACK_LINE, *told]


def test_of_a_long_message_whole_sentences_are_quoted():
    """Lines of a list are such too, and words of a result in the user's row are none of the user's."""
    first, last = "Here are the flights, as they are now:", "Which of them shall I book for you?"
    flights = "\n".join(f"- Flight HAT{at:03d} from ATL, departs at {at}:00, costs ${at}00" for at in range(40))
    asked = RenderedRow(1, "user", None, "result of look: {}", own="")
    said = [asked, RenderedRow(2, "assistant", None, f"{first}\n\n{flights}\n\n{last}")]

    [told] = fallback_text(said, 400, COUNT).split("\n")[1:]

    head, tail = told.removeprefix("The agent: ").split(" […] ")
    kept = head.removeprefix(first).strip()
    assert kept
    assert flights.replace("\n", " ").startswith(kept)
    assert kept.endswith("00")
    assert tail.endswith(last)


def test_where_room_is_shorter_the_users_words_stand_first_from_both_ends_inwards():
    text = fallback_text(turns(40), 200, COUNT)

    assert "What about place 0?" in text
    assert "What about place 39?" in text or "Place 39 is open" in text
    assert "place 20" not in text
    assert "\n[…]\n" in text


def test_a_merge_holds_words_of_the_newest_part_first_and_of_each_where_there_is_room():
    parts = [fallback_text(turns(40)[first : first + 40], 300, COUNT) for first in (0, 40, 80, 120)]

    text = join_fallbacks(parts, 1_200, COUNT)
    assert [f"What about place {at}?" in text for at in (0, 10, 20, 30)] == [True] * 4
    assert text.count(FALLBACK_LINE) == 1
    assert "What about place 30?" in join_fallbacks(parts, 200, COUNT)


texts = st.lists(st.text(max_size=80), max_size=8)
counters = st.sampled_from([len, lambda text: -(-len(text) // 4), lambda text: len(text.split())])


@given(texts, st.integers(0, 300), counters)
def test_it_never_takes_more_tokens_than_it_may(said, room, count):
    """However small the room, whatever was said and however tokens are counted."""
    spoken = rows(*(("user" if at % 2 else "assistant", text) for at, text in enumerate(said)))

    assert count(fallback_text(spoken, room, count)) <= room
    assert count(join_fallbacks(said, room, count)) <= room
