"""The ledger as it is read: values with what they are, grouped by thing; later values replace earlier ones."""

from __future__ import annotations

import json

import pytest
from context_summarize.facts.extraction import extract_facts
from context_summarize.facts.fact import Fact
from context_summarize.facts.labels import labelled
from context_summarize.facts.ledger import build_ledger
from context_summarize.facts.ledger_lines import LEDGER_LINE, format_ledger
from context_summarize.facts.merged import merge_facts
from context_summarize.facts.notes import note_of

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


def test_a_later_value_of_the_same_thing_replaces_the_earlier_one() -> None:
    """In prose by all the words before it, in JSON by the key of its row; the earlier value is named."""
    lines = shown(("user", "Set the server port to 5432."), ("user", "Set the server port to 8080."))
    assert "Set server port to 8080. (was 5432)" in lines
    assert not any(line.startswith("Set server port to 5432") for line in lines)
    old, new = ({"order_id": "ORD1234", "total": total} for total in (20, 35))
    lines = shown(("tool", json.dumps(old)), ("tool", json.dumps(new)))
    assert "order ORD1234: total 35 (was 20)" in lines


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


@pytest.mark.parametrize("unit", ['"', "{", '{"id":', "1,", "12 bar. "])
@pytest.mark.usefixtures("no_hang")
def test_a_huge_text_of_one_thing_is_no_hang(unit: str) -> None:
    """Keys and notes are looked for in a bounded part, in linear time."""
    text = unit * (HUGE // len(unit))
    assert len(list(labelled(text))) < len(text)
    assert all(len(fact.value) <= 500 for fact in extract_facts(rows(("user", text), ("tool", "{" + text))))
