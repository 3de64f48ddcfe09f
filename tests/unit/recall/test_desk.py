"""The desk: its index follows the history, answers fit their limits, and without an index the history serves."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.core.history import History
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.recall import desk as desk_module
from context_summarize.recall.desk import RecallDesk
from context_summarize.recall.query import MIN_TOKENS, RecallAnswer, RecallQuery
from context_summarize.testing import assistant, calls, result, tool_session, user
from context_summarize.tokens.counter import TokenCounter
from tests.properties.strategies import histories

COUNT = TokenCounter().count


def history_of(rows: list[JsonRow]) -> History:
    history = History(recall=True)
    add(history, rows)
    return history


def add(history: History, rows: list[JsonRow]) -> None:
    for raw in rows:
        history.add(analyse(normalise(raw)))


async def ask(desk: RecallDesk, history: History, words: str, limit: int = 1_600) -> RecallAnswer:
    return await desk.answer(history, (), 0, RecallQuery(words=words), limit)


@pytest.fixture
async def desk():
    made = RecallDesk(COUNT)
    yield made
    await made.close()


LONG = " ".join(f"Sentence number {number} of a long text says nothing that matters." for number in range(200))


async def test_the_best_passage_is_quoted_and_more_of_it_can_be_asked_for(desk):
    history = history_of(
        [user("Hello"), user(f"{LONG} The deployment deadline is March 15. {LONG}"), assistant("Fine.")]
    )

    answer = await ask(desk, history, "When is the deadline for deploying?")

    assert "\n#2 user\n… " in answer.text
    assert "The deployment deadline is March 15." in answer.text
    assert len(answer.text) < 2_000
    assert answer.text.endswith(
        '[One of them whole: recall(messages="2"); with what stands around it: recall(messages="1-3")]'
    )


async def test_the_index_follows_rows_that_come(desk):
    history = history_of([user("The port is 8080.")])
    assert (await ask(desk, history, "port")).messages == (1,)

    add(history, [assistant("Noted."), user("Now the ports are 9090 and 9091.")])

    assert set((await ask(desk, history, "port")).messages) >= {1, 3}


async def test_answers_of_the_tool_itself_are_not_found_again(desk):
    rows = [
        user("The port is 8080."),
        calls(("c1", "recall", {"words": "port"})),
        result("c1", "The port is 8080."),
        assistant("It is 8080."),
    ]

    assert 3 not in (await ask(desk, history_of(rows), "port")).messages


async def test_parts_of_ids_and_scripts_without_blanks_are_found_by_a_plain_search(desk):
    history = history_of([user("reservation 4WQ150"), user("会議は東京です"), user("nothing")])

    assert (await ask(desk, history, "reservation Q150")).messages[0] == 1
    assert (await ask(desk, history, "東京")).messages == (2,)


async def test_a_cursor_leads_to_the_rest_though_rows_have_come(desk):
    history = history_of(tool_session(60))
    add(history, [calls(("c1", "recall", {"words": "order state"}))])
    answers = [await ask(desk, history, "order state", 500)]
    while (cursor := answers[-1].cursor) is not None:
        add(history, [result("c1", "…"), user("the state of another order"), calls(("c1", "recall", {"words": "x"}))])
        answers.append(await desk.answer(history, (), 0, RecallQuery(cursor=cursor), 500))

    numbers = [number for answer in answers for number in answer.messages]
    assert len(answers) > 3
    assert len(numbers) == len(set(numbers))
    assert max(numbers) <= 241
    assert all(answer.tokens <= 500 for answer in answers)


async def test_without_full_text_search_the_history_is_searched_and_a_warning_says_so(desk, monkeypatch, caplog):
    def missing() -> None:
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(desk_module, "PassageIndex", missing)
    history = history_of(tool_session(10))

    with caplog.at_level(logging.WARNING):
        answers = [await ask(desk, history, "ORD00003") for _ in range(2)]

    assert "hold at least one of the words" in answers[0].text
    assert [record.getMessage() for record in caplog.records] == [
        "recall searches the history itself, more slowly: SQLite's full-text search fails: no such module: fts5"
    ]


async def test_an_index_that_was_cancelled_is_gone_on_with(desk):
    history = history_of([user(f"{LONG} The port is 8080.")] * 50)
    desk.ahead(history)
    await asyncio.sleep(0)
    first = asyncio.create_task(ask(desk, history, "port"))
    await asyncio.sleep(0)
    first.cancel()

    assert len((await ask(desk, history, "port", 4_000)).messages) == 50


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    histories(),
    st.integers(MIN_TOKENS, 1_600),
    st.integers(0, 60),
    st.sampled_from(["order", "Where does app/main.py ship always?", '"do not" A1B', "日本語 UNÏ", "#12 user ==="]),
)
def test_any_history_is_quoted_word_for_word_within_the_limit(rows, limit, frontier, words):
    history = history_of(rows)

    async def asked() -> list[RecallAnswer]:
        desk = RecallDesk(COUNT)
        given = [min(frontier, len(history.rendered)), RecallQuery(words=words), limit]
        answers = [await desk.answer(history, (), *given)]
        while (cursor := answers[-1].cursor) is not None:
            answers.append(await desk.answer(history, (), given[0], RecallQuery(cursor=cursor), limit))
        await desk.close()
        return answers

    answers = asyncio.run(asked())
    numbers = [number for answer in answers for number in answer.messages]

    assert len(numbers) == len(set(numbers))
    for answer in answers:
        assert answer.tokens <= limit
        headers = re.findall(r"(?m)^#(\d+) (?:user|assistant|tool|function)\b", answer.text)
        assert [int(number) for number in headers] == list(answer.messages)
        assert len(re.findall("(?m)^=== transcript", answer.text)) == (2 if answer.messages else 0)
