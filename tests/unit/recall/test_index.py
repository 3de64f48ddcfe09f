"""The index: passages cover their rows, words are found by their stems, and steps are short."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.background import finished
from context_summarize.recall.index import PassageIndex
from context_summarize.recall.passages import PASSAGE_CHARS, passages

TEXT = "The first sentence stands here. " * 20


def indexed(*texts: str) -> PassageIndex:
    index = PassageIndex()
    for text in texts:
        finished(index.add(text))
    finished(index.commit())
    return index


@given(st.one_of(st.text(), st.text("ab .\n,。", min_size=300)))
def test_passages_are_the_whole_text_in_order(text):
    spans = list(passages(text))

    assert "".join(text[start:end] for start, end in spans) == text
    assert all(0 < end - start < 3 * PASSAGE_CHARS for start, end in spans)


def test_passages_end_with_sentences():
    cut = [TEXT[start:end] for start, end in passages(TEXT)]

    assert len(cut) > 2
    assert all(part.strip().endswith(".") for part in cut)


def test_a_sentence_without_end_is_cut_between_words():
    text = "word " * 200

    assert all(text[start:end].endswith(" ") for start, end in passages(text))
    assert [end - start for start, end in passages("x" * 600)][:2] == [PASSAGE_CHARS, PASSAGE_CHARS]


def test_passages_know_their_rows():
    index = indexed("one row", "", TEXT, "the last row")

    assert index.rows == 4
    assert index.passages_of(1) == range(1, 2)
    assert len(index.passages_of(2)) == 0
    assert len(index.passages_of(3)) > 2
    assert [index.row_of(passage) for passage in index.passages_of(3)] == [3] * len(index.passages_of(3))
    assert index.row_of(len(index)) == 4
    assert index.span(1) == (0, 7)
    assert index.passages_of(5) == index.passages_of(0) == range(0)


@pytest.mark.parametrize(
    "phrase", ['"deploys"', '"DEPLOYED"', '"deployment friday"', '"order" "4711"', '"cafe"', '"depl"*']
)
def test_words_are_found_by_stem_case_accent_phrase_and_start(phrase):
    index = indexed("nothing", "Deploying happens after the deployment Friday, order 4711, at the Café.")

    assert index.passages_with(phrase, 10) == [2]
    assert index.count(phrase, 10) == 1


def test_no_more_than_asked_for_are_counted_and_given_newest_first():
    index = indexed(*["equal"] * 5)

    assert index.count('"equal"', 3) == 3
    assert index.passages_with('"equal"', 2) == [5, 4]


def test_any_text_can_be_added():
    index = indexed("\ud800 lone", "a\0b found", "\n \n")

    assert index.passages_with('"found"', 1) == [2]
    assert len(index.passages_of(3)) == 0


def test_a_long_row_is_added_in_short_steps():
    index = PassageIndex()

    assert sum(1 for _ in index.add(TEXT * 100)) > 10


def test_a_closed_index_answers_nobody():
    index = indexed("one")
    index.close()

    with pytest.raises(sqlite3.ProgrammingError):
        index.count('"one"', 1)
