"""The ranking: what answers a question comes first, with its passages; rare words, neighbours and folded rows count."""

from __future__ import annotations

import pytest

from context_summarize.background import finished
from context_summarize.recall.index import PassageIndex
from context_summarize.recall.ranking import Ranking, rank, telling

FILLER = [f"We talked about weather number {number} at some length." for number in range(30)]


def ranking(texts: list[str], question: str, *, until: int | None = None, folded: int = 0) -> Ranking:
    index = PassageIndex()
    for text in texts:
        finished(index.add(text))
    try:
        return finished(rank(index, question, until or len(texts), folded))
    finally:
        index.close()


def numbers(texts: list[str], question: str, **options: int) -> list[int]:
    return [found.number for found in ranking(texts, question, **options).rows]


def test_the_row_with_most_of_the_words_is_first_whatever_their_endings():
    texts = [*FILLER, "The deadline for deploying the tracker is March 15.", *FILLER, "A tracker is a tool."]

    assert numbers(texts, "When is the tracker's deployment deadline?")[0] == 31


def test_a_long_row_that_holds_a_word_by_chance_comes_later():
    texts = [*FILLER, "word " * 2_000 + "budget. " + "word " * 2_000, *FILLER, "The budget it is.", *FILLER]

    assert numbers(texts, "budget")[0] == 62


def test_a_phrase_in_quotation_marks_is_looked_for_as_one():
    texts = ["state of error", *FILLER, "the error state", *FILLER, "error", "state"]

    assert numbers(texts, '"error state"')[0] == 32


def test_a_short_row_beside_one_that_matches_is_found_too():
    texts = [*FILLER, "Which car do you drive?", "A Prius.", *FILLER]

    assert numbers(texts, "Which car does Evan drive?")[:2] == [31, 32]


def test_passages_of_the_best_rows_come_with_their_neighbours():
    sentences = [
        f"Sentence number {number} says something of no importance to anybody who reads it." for number in range(20)
    ]
    text = " ".join([*sentences[:10], "The port is 8080.", *sentences[10:]])

    ((start, end),) = ranking([text, *FILLER], "port").rows[0].spans

    assert "The port is 8080." in text[start:end]
    assert "number 7 " in text[start:end]
    assert "number 12 " in text[start:end]
    assert end - start < len(text) / 2


@pytest.mark.parametrize("question", ["what is the 4WQ150", "4wq"])
def test_an_id_is_found_by_its_start(question):
    assert ranking([*FILLER, "reservation 4WQ150"], question).rows[0].number == 31


def test_stop_words_count_only_where_nothing_else_is_asked():
    assert telling(["what", "is", "the", "port"]) == ["port"]
    assert telling(["who", "is", "it"]) == ["who", "is", "it"]
    assert numbers(["To be or not to be.", *FILLER], "to be or not to be")[0] == 1


@pytest.mark.parametrize("question", ['"', "a\0b", "* AND OR NOT NEAR(", "x" * 400, "port:8080"])
def test_no_question_is_an_error(question):
    ranking(["The port:8080 is * open", *FILLER], question)
