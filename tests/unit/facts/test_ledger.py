"""The ledger as it is read: values with what they are, grouped by thing, and kept by merges."""

from __future__ import annotations

import json

import pytest

from context_summarize.facts.extraction import extract_facts
from context_summarize.facts.fact import Fact
from context_summarize.facts.labels import labelled
from context_summarize.facts.ledger import build_ledger
from context_summarize.facts.ledger_lines import LEDGER_LINE, format_ledger
from context_summarize.facts.merged import merge_facts
from context_summarize.facts.notes import note_of, prose_of, sentences, subject_of
from context_summarize.facts.pairs import pair_around
from context_summarize.facts.prose import Prose
from context_summarize.transcript.rows import RenderedRow
from tests.support.effort import HUGE

RESERVATION = {
    "reservation_id": "4WQ150",
    "user_id": "sara_doe_496",
    "flights": [{"flight_number": "HAT170", "date": "2024-05-12", "price": 250}],
}


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def rows(*texts: tuple[str, str]) -> list[RenderedRow]:
    return [RenderedRow(number, role, None, text) for number, (role, text) in enumerate(texts, start=1)]


def shown(*texts: tuple[str, str], prose: str = "", room: int = 400) -> list[str]:
    """The lines of the ledger of these rows."""
    return format_ledger(build_ledger(extract_facts(rows(*texts)), prose, room, count)).split("\n")


def test_a_json_result_is_one_line_with_the_identity_of_its_row() -> None:
    """The key path's last names stand before values that do not speak for themselves."""
    (line,) = [line for line in shown(("tool", json.dumps(RESERVATION))) if "4WQ150" in line]
    assert line == "reservation 4WQ150: user sara_doe_496, flight HAT170, 2024-05-12, price 250"


def test_a_result_without_an_identity_belongs_to_what_its_call_has_asked_for() -> None:
    """The identifier among the arguments of the call."""
    call = 'call get_user({"user_id": "mia_li_3668"})'
    lines = shown(("assistant", call), ("tool", json.dumps({"email": "mia@example.com", "orders": ["ORD1234"]})))
    (line,) = [line for line in lines if line.startswith("user mia_li_3668: ")]
    assert "orders ORD1234" in line
    assert "mia@example.com" in line


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I've noticed the dashboard API response time is 250ms after caching.", "dashboard API response time 250ms"),
        ("I'm kinda worried, my weekly target is 1,350 words now.", "weekly target 1,350 words"),
        ("We meet every Monday, Wednesday, and Friday at 7 PM.", "Monday, Wednesday, Friday at 7 PM"),
    ],
)
def test_a_note_keeps_the_telling_words_of_its_sentence_in_their_order(said: str, note: str) -> None:
    """Filler goes; what the value is a value of stays."""
    assert note in note_of(said)
    assert any(note in line for line in shown(("user", said)))


@pytest.mark.parametrize("text", ["1,350", "No figure here at all.", "42!", "```\nx = 42 units of work\n```"])
def test_what_says_nothing_gives_no_note(text: str) -> None:
    """Bare numbers, sentences without a value, and code."""
    assert not [note for sentence in sentences(prose_of(text)) if (note := note_of(sentence))]


def test_a_later_value_of_the_same_thing_replaces_the_earlier_one() -> None:
    """In prose by all the words before it, in JSON by the key of its row; the earlier value is named."""
    lines = shown(("user", "Set the server port to 5432."), ("user", "Set the server port to 8080."))
    assert "Set server port to 8080. (was 5432)" in lines
    assert not any(line.startswith("Set server port to 5432") for line in lines)
    old, new = ({"order_id": "ORD1234", "total": total} for total in (20, 35))
    lines = shown(("tool", json.dumps(old)), ("tool", json.dumps(new)))
    assert "order ORD1234: total 35 (was 20)" in lines


def test_values_of_different_things_do_not_replace_each_other() -> None:
    """One word more is another thing; a key with several values is a list; two dates may both hold."""
    lines = shown(("user", "The pump in the cellar shows 300 bar."), ("user", "The pump in the attic shows 200 bar."))
    assert not any("(was" in line for line in lines)
    flights = [json.dumps({"reservation_id": "4WQ150", "flights": ["HAT170", name]}) for name in ("HAT171", "HAT172")]
    assert not any("(was" in line for line in shown(("tool", flights[0]), ("tool", flights[1])))
    assert subject_of("met Michael at festival on Jan 15") == ()


def test_what_the_prose_tells_near_its_words_is_left_out_and_bare_values_are_not() -> None:
    """`250` somewhere else in the text tells nothing of the price."""
    fact = Fact("amount", "$250", about="reservation 4WQ150", label="ticket price")
    assert Prose("The ticket price of reservation 4WQ150 was $250.").tells(fact)
    assert not Prose("A gift of $250 was mentioned." + " Nothing else." * 60).tells(fact)
    assert build_ledger([fact], "A gift of $250 was mentioned.", 60, count) == (fact,)


def test_notes_of_the_user_are_not_crowded_out_by_bare_identifiers() -> None:
    """What a user says is asked for again."""
    told = ("user", "Our dashboard shows 37 open invoices since March 12.")
    codes = ("tool", " ".join(f"ABC{n:03d}" for n in range(300)))
    assert any("37 open invoices" in line for line in shown(told, codes, room=120))


def test_merged_ledgers_are_grouped_by_thing_and_the_newest_value_stands() -> None:
    """Values of one row that stood in two children stand on one line."""
    old = [
        Fact("id", "HAT170", about="reservation 4WQ150", label="flight"),
        Fact("note", "server port 5432", told=True),
    ]
    new = [
        Fact("id", "sara_doe_496", about="reservation 4WQ150", label="user"),
        Fact("note", "server port 8080", told=True),
    ]
    merged = merge_facts([old, new])
    assert format_ledger(merged).split("\n") == [
        LEDGER_LINE,
        "server port 8080 (was 5432)",
        "reservation 4WQ150: flight HAT170, user sara_doe_496",
    ]


def test_identities_that_stand_alone_share_a_line() -> None:
    """Their noun is paid for once."""
    facts = [Fact("id", name, about=f"flight {name}") for name in ("HAT001", "HAT002")]
    assert format_ledger(facts) == f"{LEDGER_LINE}\nflight HAT002 HAT001"


@pytest.mark.parametrize(
    "unit", ['"', '\\"', "{", "[", '{"id":', '{"a_id":"x1",', "1,", "a1 ", "12 bar. ", "- ", "a, 1 "]
)
@pytest.mark.usefixtures("no_hang")
def test_a_huge_text_of_one_thing_is_no_hang(unit: str) -> None:
    """Keys and notes are looked for in a bounded part, in linear time."""
    text = unit * (HUGE // len(unit))
    assert len(list(labelled(text))) < len(text)
    assert all(len(fact.value) <= 500 for fact in extract_facts(rows(("user", text), ("tool", "{" + text))))


def test_values_of_json_that_do_not_fit_with_their_words_stand_behind_their_noun() -> None:
    """Every value is there, and the first rows keep their words."""
    facts = [Fact("id", f"HAT{n:03}", about=f"reservation AB{n:02}CD", label="flight") for n in range(20)]
    whole = sum(count(f"\nreservation AB00CD: flight HAT{n:03}") for n in range(20))
    shown = format_ledger(build_ledger(facts, "", whole * 3 // 4, count))

    assert all(fact.value in shown for fact in facts)
    assert count(shown) <= whole * 3 // 4
    assert "reservation AB00CD: flight HAT000" in shown
    assert "\nflight HAT" in shown


def test_notes_of_prose_keep_their_room_where_no_json_is() -> None:
    """Amounts without a key do not push out what the user said."""
    notes = [Fact("note", f"keep budget under {n} euros for trip", told=True) for n in range(100, 110)]
    amounts = [Fact("amount", f"${n}") for n in range(1_000, 1_100)]
    ledger = build_ledger([*amounts, *notes], "", 150, count)

    assert sum(fact.kind == "note" for fact in ledger) >= 5


def test_chat_without_figures_keeps_the_sentences_that_say_most() -> None:
    """Names, times and rare words; what is said again and again, and bare politeness, goes first."""
    small = [
        ("user", "That is so great to hear, it is really great."),
        ("assistant", "It's great to really hear that."),
    ]
    telling = ("assistant", "Yesterday I joined the church choir with my colleague Rob.")
    lines = shown(*small * 10, telling, *small * 10, room=40)
    assert '"Yesterday I joined the church choir with my colleague Rob."' in lines


def test_a_remark_says_more_than_the_head_of_a_message_and_less_than_a_figure() -> None:
    """Room goes to figures, then to remarks, then to quoted messages."""
    facts = [
        Fact("user", "yes please go on"),
        Fact("note", "We met Anna in Lisbon."),
        Fact("note", "rent is 900 euros"),
    ]
    assert [fact.value for fact in build_ledger(facts, "", count(LEDGER_LINE) + 8, count)] == ["rent is 900 euros"]
    assert facts[0] not in build_ledger(facts, "", count(LEDGER_LINE) + 14, count)


@pytest.mark.usefixtures("no_hang")
def test_a_huge_chat_of_remarks_is_weighed_in_linear_time() -> None:
    """However many sentences there are."""
    text = "We met Anna in Lisbon yesterday. " * (HUGE // 40)
    assert len(extract_facts(rows(*[("user", text)] * 4))) < 10


def test_a_value_in_one_run_with_its_name_is_kept_with_it() -> None:
    """Not with a few words around, and not bare."""
    lines = shown(("user", "Ledger: limit-7=val-5a9dead1c6; item-7:DONE|receipt=r-9963e80c|next=n-32930d7b."))
    assert "limit-7=val-5a9dead1c6" in lines
    assert "item-7:DONE|receipt=r-9963e80c|next=n-32930d7b" in lines
    assert not any(line.startswith("ids:") for line in lines)


@pytest.mark.parametrize("text", ["see https://a.example/x?id=4WQ150", "at 10:30-4WQ150", "name= 4WQ150", "4WQ150"])
def test_what_has_no_name_of_its_own_in_its_run_is_no_pair(text: str) -> None:
    """A link, a time, a blank between."""
    assert pair_around(text, "4WQ150") == ""


def test_many_values_under_one_name_yield_to_values_with_names_of_their_own() -> None:
    """How often a name occurs says nothing; what is said once of one thing is asked for again."""
    ours = ("user", "Use key-7=val-5a9dead1c6 and key-8=val-1b2c3d4e5f.")
    decoys = [("user", f"Archive notebook {n} is old. Spare value 16828c54d6b38{n:03} is unused.") for n in range(30)]
    lines = shown(ours, *decoys, room=60)
    assert "key-7=val-5a9dead1c6" in lines
    assert "key-8=val-1b2c3d4e5f" in lines


def test_a_ledger_that_is_too_large_is_cut_in_few_tries() -> None:
    """What must go is told from its length; only near the end each fact is tried by itself."""
    facts = [Fact("id", f"CASE{at:04}", about=f"case {at} of {at % 7} more", label="state of it") for at in range(400)]
    tried: list[int] = []

    def count(text: str) -> int:
        if text.startswith(LEDGER_LINE) and "\n" in text:
            tried.append(len(text))
        return len(text)

    kept = build_ledger(facts, "", 4_000, count)
    assert 40 < len(kept) < 400
    assert len(format_ledger(kept)) <= 4_000
    assert len(tried) < 60
