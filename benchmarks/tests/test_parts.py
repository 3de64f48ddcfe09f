"""Sessions, summarisers and scores, each by itself."""

from __future__ import annotations

from typing import Any

from benchmarks.clock import run_virtually
from benchmarks.prospective import Watch
from benchmarks.scores import asked, newest
from benchmarks.sessions import Question, Session, assistant, called, plant
from benchmarks.summarisers import Extracting, Keeping
from benchmarks.tokens import Counting, broken_pairs, count, measure, text_of
from benchmarks.words import gold_values, identifiers, is_near, places, significant_words

SAID = [{"role": "user", "content": "One two three four."}, {"role": "assistant", "content": "Five six seven."}] * 10


def test_facts_are_planted_in_all_roles_and_the_same_with_the_same_seed() -> None:
    rows, facts = plant(SAID, 12, seed=3)
    text = "\n".join(map(text_of, rows))
    assert len(set(facts)) == 12
    assert all(places(text, fact) for fact in facts)
    assert {row["role"] for row in rows if any(places(text_of(row), fact) for fact in facts)} == {"user", "assistant"}
    assert plant(SAID, 12, seed=3) == (rows, facts)
    assert plant(SAID, 12, seed=4) != (rows, facts)


def written(summariser: Any, shown: str, **given: Any) -> str:
    return str(run_virtually(summariser.ask(shown, **given)))


def test_the_stand_in_keeps_facts_within_the_length_that_is_asked_for() -> None:
    sure = type("Sure", (Keeping,), {"keep": 1.0})(count, 10_000)
    shown = " ".join(f"FACT-{number:04d}-ABCD. " + "Much else is said at length. " * 12 for number in range(20))
    assert written(sure, shown).count("FACT-") == 20
    brief = written(sure, shown, instructions="Use at most 30 words.")
    assert count(brief) <= 40
    assert 0 < brief.count("FACT-") < 20
    assert [call.wrote for call in sure.calls][1] == count(brief)


def test_extracted_are_the_sentences_with_the_words_that_are_said_most() -> None:
    shown = "The refund of Newark was paid. A refund to Newark is a refund. Nobody knows why cats sleep so long. " * 3
    assert "cats" not in written(Extracting(count, 10_000), shown, max_output=12)


def test_a_row_counts_with_its_calls_and_calls_at_the_end_may_be_open() -> None:
    row = assistant("Both.", [("a", "read", {"path": "/x"}), ("b", "read", {})])
    assert measure(row, count) == 3 + sum(map(count, ["Both.", "read", '{"path":"/x"}', "read", "{}"]))
    result = {"role": "tool", "tool_call_id": "b", "name": "read", "content": "x"}
    assert broken_pairs([row]) == 0
    assert broken_pairs([row, result, *SAID[:1]]) == 1
    assert broken_pairs([result]) == 1
    counting = Counting(cached=True)
    assert counting("some words") == count("some words")


def test_values_are_found_whole_and_near_the_words_of_their_question() -> None:
    text = f"The ferry to Oslo leaves at 14:05 from pier 7. {'x ' * 400} Elsewhere 14:05 is said."
    assert len(places(text, "14:05")) == 2
    assert places("v14:059", "14:05") == []
    assert is_near(text, "14:05", significant_words("When does the ferry to Oslo leave?"))
    assert not is_near(text, "14:05", significant_words("What did Maria order for lunch?"))
    assert gold_values("It cost $25 and 3 hours", ["we paid $25"]) == ("$25",)


def test_identifiers_are_paths_names_of_code_and_numbers() -> None:
    found = identifiers("open src/app/main.py, call run_all or handleKey; order HAT039 of 48213 and/or none")
    assert found == {
        "src/app/main.py": "path",
        "run_all": "name",
        "handleKey": "name",
        "HAT039": "number",
        "48213": "number",
    }


def test_questions_are_judged_in_the_view_and_in_the_newest_rows_of_its_size() -> None:
    rows = ({"role": "user", "content": "The gate of flight HAT039 is B12."}, *SAID)
    question = Question("What is the gate of flight HAT039?", ("B12",))
    session = Session(name="s", rows=rows, questions=(question,))
    assert asked(session, rows[:1]) == {"asked": 1, "gold": 1, "near": 1}
    assert newest(rows, sum(measure(row, count) for row in SAID)) == SAID
    assert text_of(newest(rows, 4)[-1]) in text_of(SAID[-1])


def test_an_identifier_that_left_the_verbatim_rows_is_an_event_and_held_if_the_view_shows_it() -> None:
    rows = (
        {"role": "user", "content": "The build script is tools/make_all.py, not docs/old.md, as agreed."},
        *SAID,
        *called(7, "bash", {"command": "python tools/make_all.py"}, "done"),
    )
    for text, held, control in (("None", 0, 0), ("See tools/make_all.py", 1, 0), ("See docs/old.md", 0, 1)):
        watch = Watch(Session(name="s", rows=rows))
        watch(len(rows) - 2, [{"role": "user", "content": text}, *SAID])
        assert (watch.found["events"], watch.found["held"]) == (1, held)
        assert (watch.each["control"], watch.each["written"]) == ([control], [3 + count(text)])
    watch = Watch(Session(name="s", rows=rows))
    watch(len(rows) - 2, rows[:-2])
    assert watch.found["events"] == 0
