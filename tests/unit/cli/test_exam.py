"""`exam` at the command line, against a scripted model on the loopback: what it asks, tells, keeps, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from context_summarize.errors import CommandError
from context_summarize.exam.paper import Paper
from context_summarize.exam.questions import spans
from context_summarize.tokens.counter import TokenCounter
from tests.support.chat_server import ChatServer, Said, serving
from tests.support.cli import NARROW, call, plain_terminal, refusal, store  # noqa: F401
from tests.support.examinee import FACTS, Examinee
from tests.support.rows import tool_session

SESSION = tool_session(18, size=800)
HELD = "AKIA" + "Q7X2M5V6K3J7W4T6"
ONCE = {"part": 5, "absent": 1, "answer": 44, "grade": 11}
"""Calls of a whole exam: of eleven questions, an answer with recall takes two."""


@pytest.fixture
def model() -> Iterator[Examinee]:
    made = Examinee()
    yield made
    made.let_go.set()


@pytest.fixture
def server(model: Examinee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """The model's server; the session is in the working folder."""
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "session.jsonl", SESSION)
    with serving(model) as told:
        yield told
        model.let_go.set()


def exam(server: ChatServer, *options: object, model: str = "gpt-6.2-sol") -> Result:
    return call("exam", "session.jsonl", "--provider", server.address, "--model", model, *NARROW, "--yes", *options)


def few() -> tuple[str, Path]:
    """The option for two questions, which take no calls."""
    questions = [{"text": text, "facts": FACTS} for text in ("Why?", "What was done?")]
    return "--questions", store(Path("few.json"), [questions])


def kept(name: str = "session.jsonl.exam.json") -> dict[str, Any]:
    return dict(json.loads(Path(name).read_text()))


def questions() -> list[dict[str, Any]]:
    return [question for part in kept()["questions"].values() for question in part]


def counted(model: Examinee) -> dict[str, int]:
    return {step: model.steps.count(step) for step in ONCE}


def end(told: Result) -> str:
    return str(told.stderr.splitlines()[-1])


def sums(told: Result) -> list[tuple[str, ...]]:
    """The last line of the table: what the answers from each view state."""
    return re.findall(r"^All +(\d+ of \d+) +(\d+ of \d+) +(\d+ of \d+)$", told.stdout, re.MULTILINE)


def test_a_model_is_examined_and_all_is_kept(server: ChatServer, model: Examinee) -> None:
    """Ten questions and the absent one whose name does not occur; recall answers what the request does not hold."""
    told = exam(server, "--questions", "q.json")

    assert told.exit_code == 0, told.output
    assert re.search(r" some 0\.\d\d dollars at list prices of GPT-6.2 Sol", told.stderr)
    assert counted(model) == ONCE
    data = kept()
    assert [len(part) for part in data["questions"].values()] == [2, 2, 2, 2, 2, 1]
    assert questions() == json.loads(Path("q.json").read_text())
    assert data["used"] == {"calls": 61, "input": 61 * 900, "output": 61 * 50}
    assert data["answers"]["1"].keys() == {"request", "recall", "newest"}
    assert data["answers"]["1"]["recall"]["recalls"] == [{"words": "ORD00003"}]
    assert data["grades"]["1"] == {"request": 0, "recall": 1, "newest": 0}
    assert sums(told) == [("0 of 21", "10 of 21", "0 of 21")]
    assert told.stdout.count("Which [order]? 0 ") == 5
    assert "recall was called 11 times" in told.stdout
    assert Path("session.jsonl.exam.json").stat().st_mode & 0o077 == 0


def test_what_the_views_hold_is_what_is_asked_about(server: ChatServer, model: Examinee) -> None:
    """The request has the summaries; the newest rows have its size, and no summary; secrets go nowhere."""
    first = {**SESSION[0], "content": f"{SESSION[0]['content']} The key is {HELD}."}
    store(Path("session.jsonl"), [first, *SESSION[1:]])
    assert exam(server).exit_code == 0

    answers = [
        body["messages"][1]["content"] for body in server.bodies if "before its eyes" in str(body["messages"][0])
    ]
    request, newest = answers[0].rpartition("\n\n")[0], answers[-1].rpartition("\n\n")[0]
    assert "Goal: the user asked for orders" in request
    assert "Goal: the user asked for orders" not in newest
    assert 0.7 < len(newest) / len(request) <= 1.3
    assert HELD not in str(server.bodies)
    graded = [body["messages"][1]["content"] for body in server.bodies if "Say for each" in str(body["messages"][0])]
    places = {text.index("It is blue") > text.index("Answer B: ") for text in graded}
    assert places == {True, False}, "the views change places"


def test_nothing_is_asked_before_the_user_agrees(server: ChatServer) -> None:
    told = call("exam", "session.jsonl", "--provider", server.address, "--model", "qwen3", *NARROW)
    assert told.exit_code == 1
    assert "dollars unknown" in told.stderr
    assert server.bodies == []


def test_one_answer_that_is_no_json_is_asked_for_again_and_only_nonsense_ends_it(
    server: ChatServer, model: Examinee
) -> None:
    """A model that never writes JSON has cost its calls, and is told in one line."""
    model.instead = {"part": ["Sure!", '[{"text": "half'], "grade": ['{"A": 1}']}
    told = exam(server)
    assert (told.exit_code, len(questions())) == (3, 9)
    assert 'its answer is not the JSON that was asked for: \'[{"text": "half\'' in told.stderr

    for step in ("part", "absent"):
        model.instead[step] = ["I am a teapot."] * 10
    told = exam(server, "--json", "other.json")
    assert told.exit_code == 2
    assert end(told).startswith("Error: gpt-6.2-sol wrote no question: its answer is not the JSON")


@pytest.mark.parametrize(
    ("step", "said", "sum_of_recall"),
    [
        ("answer", [{"refusal": ""}, "I will not say that."], "2 of 4"),
        ("answer", [400, "I will not say that."], "2 of 4"),
        ("grade", ["Well done!"] * 2, "1 of 2"),
    ],
)
def test_what_is_of_no_use_costs_one_answer_and_the_next_run_asks_for_it_alone(
    server: ChatServer, model: Examinee, step: str, said: list[Said], sum_of_recall: str
) -> None:
    model.instead = {step: said}
    told = exam(server, *few())
    assert told.exit_code == 3
    assert end(told).startswith("MISSING: 1 answer of the model; the same command asks again. ")
    [(_, with_recall, _)] = sums(told)
    assert with_recall == sum_of_recall
    if step == "answer":
        assert "request" not in kept()["answers"]["1"]
        assert kept()["answers"]["2"]["request"]["text"] == "I will not say that."

    model.steps.clear()
    told = exam(server, *few())
    assert (told.exit_code, model.steps) == (0, [*dict.fromkeys([step, "grade"])]), "the summaries are kept too"
    assert sums(told) == [("0 of 4", "2 of 4", "0 of 4")]


def test_a_model_that_calls_recall_for_ever_is_not_followed(server: ChatServer, model: Examinee) -> None:
    function = {"name": "recall", "arguments": '{"words": "x"}'}
    calls: Said = {"content": "Hm.", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    model.instead = {"answer": [500, 500, *["No."] * 2, *[calls] * 5]}  # it is busy at first, and asked again
    assert exam(server, *few()).exit_code == 0
    assert kept()["answers"]["1"]["recall"] == {"text": "Hm.", "recalls": [{"words": "x"}] * 4}


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (0, "Error: gpt-6.2-sol failed 3 times in a row: TimeoutError: no answer within 1 s"),
        (500, "Error: gpt-6.2-sol failed 3 times in a row: ProviderUnavailableError: HTTP 500"),
        (401, "Error: gpt-6.2-sol cannot be asked: AuthenticationError: HTTP 401"),
    ],
)
def test_a_model_that_is_slow_or_down_ends_the_exam_and_what_was_paid_for_is_kept(
    server: ChatServer, model: Examinee, said: Said, says: str
) -> None:
    model.instead = {"answer": ["Blue.", "Red.", *[said] * 9]}
    told = exam(server, *few(), "--config", "wait_seconds=0.5")
    assert told.exit_code == 2
    assert end(told).startswith(says)
    assert [kept()["answers"][at]["request"]["text"] for at in "12"] == ["Blue.", "Red."]


@pytest.mark.parametrize("step", ["summary", "part", "answer", "grade"])
def test_ctrl_c_keeps_what_was_paid_for(server: ChatServer, model: Examinee, step: str, no_hang: None) -> None:
    """In each step: the second run asks for what the first has not got."""
    good = {"part": model.part(""), "grade": model.grade("")}.get(step, "Goal: it was done.")
    model.instead = {step: [good, -1]}
    told = exam(server)
    assert (told.exit_code, end(told)) == (130, "Interrupted.")

    model.instead.clear()
    model.let_go.set()
    second = exam(server)
    assert second.exit_code == 0, second.output
    interrupted = {step: ONCE[step] + 1} if step in ONCE else {}
    assert counted(model) == {**ONCE, **interrupted}


def test_the_same_questions_are_given_to_another_model(server: ChatServer, model: Examinee) -> None:
    """Each exam has a file of its own; a file of another exam, or of anything else, is left alone."""
    questions = [{"text": "Why blue?", "facts": ["it is blue"]}]
    store(Path("q.json"), [questions])
    assert exam(server, "--questions", "q.json").exit_code == 0
    assert (model.steps.count("part"), model.steps.count("grade")) == (0, 1)
    asked = ("exam", "session.jsonl", "--provider", server.address, "--yes", *NARROW)

    assert "is of another exam (model: 'gpt-6.2-sol', now 'm')" in refusal(*asked, "--model", "m")
    assert "q.json is not replaced: it is no exam" in refusal(*asked, "--model", "m", "--json", "q.json")
    store(Path("q.json"), [[{**questions[0], "text": "Why red?"}]])
    told = refusal(*asked, "--model", "gpt-6.2-sol", "--questions", "q.json")
    assert "session.jsonl.exam.json has other questions than q.json" in told
    store(Path("q.json"), [[{"text": "Why?"}]])
    assert "q.json holds no questions; expected [{" in refusal(*asked, "--model", "m", "--questions", "q.json")
    told = call(*asked[:-2], "--model", "m", "--json", "n.json").stderr
    assert "nothing is summarised; give a smaller --window" in told


def test_another_model_writes_its_own_summaries_and_two_exams_never_share_a_file(
    server: ChatServer, model: Examinee
) -> None:
    for name, writes in (("a", True), ("a", False), ("b", True)):
        Path("e.json").unlink(missing_ok=True)
        model.steps.clear()
        assert exam(server, *few(), "--json", "e.json", model=name).exit_code == 0
        assert ("summary" in model.steps) == writes
    one, other = Paper(Path("two.json"), {}), Paper(Path("two.json"), {})
    one.save()
    one.save()
    with pytest.raises(CommandError, match=r"two\.json was changed by another exam"):
        other.save()


def test_a_question_is_written_from_some_thousand_tokens_that_fit_a_small_window() -> None:
    parts = [*spans([f"[m{at}] user\n{'word ' * 400}" for at in range(200)], TokenCounter().count)]
    sizes = [TokenCounter().count(part) for part in parts]
    assert [re.match(r"\[m(\d+)\]", part)[1] for part in parts] == ["0", "40", "80", "120", "160"]  # type: ignore[index]
    assert 3_000 < min(sizes) <= max(sizes) < 4_100


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--json", "no/a.json"], "no/a.json cannot be written: No such file or directory; name a file elsewhere"),
        (["--questions", "no/q.json"], "no/q.json cannot be written: No such"),
        (["--config", "summary_provider=foo"], "summary_provider cannot be set here: --provider names it; give"),
    ],
)
def test_options_that_cannot_be_used_are_told_before_anything_is_asked(
    server: ChatServer, options: list[str], says: str
) -> None:
    before = sorted(Path.cwd().iterdir())
    told = exam(server, *options)
    assert (told.exit_code, told.stdout, server.bodies) == (2, "", [])
    assert says in " ".join(told.stderr.split())
    assert sorted(Path.cwd().iterdir()) == before


def test_without_a_model_the_pipe_runs_and_says_that_it_means_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "session.jsonl", [*SESSION, *tool_session(3)])
    told = call("exam", "session.jsonl", "--provider", "offline", *NARROW)
    assert told.exit_code == 0, told.output
    words = " ".join(told.output.split())
    assert "offline tries the pipe alone: no model is asked, nothing is paid, and the answers mean nothing." in words
    assert not re.search("dollar|The model|GPT", words)
    data = kept("session.jsonl.offline.exam.json")
    assert len(data["grades"]) == len([*data["questions"].values()]) * 2 - 1 > 0
    assert all(one["recall"]["recalls"] for one in data["answers"].values())
