"""Exact values are told by their form alone; words of prose are none."""

from __future__ import annotations

import warnings

import pytest

from context_summarize.notes.patterns import labels_in, leaves, pairs_in, values_in
from context_summarize.notes.sentences import pieces_of, words_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://example.org/a?b=1 for it", {"https://example.org/a?b=1": "url"}),
        (
            "open src/app/main.py, then ./run and ~/notes",
            {"src/app/main.py": "path", "./run": "path", "~/notes": "path"},
        ),
        ("it fails in core/plan.py:138", {"core/plan.py:138": "path", "core/plan.py": "path"}),
        ("write to ann.lee@example.org.", {"ann.lee@example.org": "id"}),
        ("on 2024-05-01 at 10:30 for $1,250.50", {"2024-05-01": "figure", "10:30": "figure", "$1,250.50": "figure"}),
        ("ticket T-1317 of order 8830142", {"T-1317": "id", "8830142": "id"}),
        (
            "call parse_row() with maxDepth and client.responses",
            {"parse_row": "name", "maxDepth": "name", "client.responses": "name"},
        ),
        ("run it with --dry-run", {"--dry-run": "name"}),
        ("DEBUG_LEVEL=3 is set", {"DEBUG_LEVEL": "name", "3": "figure"}),
    ],
)
def test_values_have_the_kind_that_their_form_tells(text: str, found: dict[str, str]) -> None:
    assert values_in(text) == found


@pytest.mark.parametrize(
    "text", ["and/or his/her, e.g. this", "A well-known, plain sentence.", "// a comment", "x" * 400]
)
def test_words_of_prose_are_no_values(text: str) -> None:
    assert values_in(text) == {}


def test_a_text_says_itself_what_a_short_value_is() -> None:
    text = "Account number: A-17. Colour: pale green, as before. Note: this is far too long to be a value of a label."

    assert [pair for pair in pairs_in(text) if pair[1]] == [("account number", "A-17"), ("colour", "pale green")]
    assert list(pairs_in("commit=abc123f; size=12 x=y")) == [("commit", "abc123f")]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("amount: $12,531 in all", ("amount", "$12,531 in all")),
        ("quota: 250,000", ("quota", "250,000")),
        ("patient weight: 82,4 kg", ("patient weight", "82,4 kg")),
        ("betrag: 1.299,50", ("betrag", "1.299,50")),
        ("deadline: April 12, 2031.", ("deadline", "April 12, 2031")),
        ("signed by: John F. Kennedy (JFK)", ("signed by", "John F. Kennedy")),
        ("owner: Ann O'Brien", ("owner", "Ann O'Brien")),
        ("start: 10:30", ("start", "")),
        ("total: 12 * 3", ("total", "")),
    ],
)
def test_a_value_behind_a_label_is_whole_or_absent(text: str, pair: tuple[str, str]) -> None:
    assert list(pairs_in(text)) == [pair]


def test_values_of_json_carry_their_key_and_the_identity_of_their_object() -> None:
    text = '{"reservation_id": "ZX81QQ", "total": 250, "passengers": [{"id": "p-1", "age": 40}], "note": "plain"}'

    told = [tuple(leaf) for leaf in leaves(text)]

    assert ("ZX81QQ", "reservation ZX81QQ", "") in told
    assert ("250", "reservation ZX81QQ", "total") in told
    assert ("40", "passengers p-1", "age") in told


def test_text_that_is_no_data_brings_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(leaves(r"{'pattern': '\d+', 'user_id': 'mia_1'}")) == []


def test_prose_is_read_in_sentences_and_code_is_passed_over() -> None:
    text = "First we met Dr. Lee,\nwho was late. Then:\n```\nx = 1\n```\nLast Friday she left."

    assert list(pieces_of(text)) == ["First we met Dr. Lee, who was late.", "Then:", "Last Friday she left."]


def test_names_figures_and_words_of_time_are_what_a_reader_would_ask_for() -> None:
    found = words_of("We walked last Friday, and Ann walked 12 miles.")

    assert [word for word, is_asked in found.items() if is_asked] == ["last", "friday", "ann", "12"]
    assert "walked" in found


def test_keys_of_json_and_a_number_behind_a_name_are_no_names_of_code() -> None:
    assert labels_in('{"last_four": 1, "address1": "x", "T-17": {}, "main.py": {}}') == {"last_four", "address1"}
    assert values_in("ann_lee_4711") == {"ann_lee_4711": "id"}
