"""`exam` at the command line, against a scripted model on the loopback: what it asks, tells, keeps, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support.chat_server import ChatServer, Said, serving
from tests.support.cli import NARROW, call, plain_terminal, refusal, store  # noqa: F401
from tests.support.rows import tool_session

STEPS = {"You write questions": "part", "Write two questions about things": "absent", "an agent has before": "answer"}
STEPS |= {"Say for each answer": "grade"}
FACTS = ["the order is there", "it is blue"]
SESSION = tool_session(18, size=800)
HELD = "AKIA" + "Q7X2M5V6K3J7W4T6"


class Examinee:
    """A model that does each step of an exam well, as long as `instead` has nothing else to say."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.instead: dict[str, list[Said]] = {}
        """By step: answers in place of the next ones; an answer of -1 is Ctrl-C, one of 0 hangs."""
        self.let_go = threading.Event()

    def __call__(self, body: dict[str, Any]) -> Said:
        system, user = body["messages"][0]["content"], body["messages"][1]["content"]
        step = next((step for sign, step in STEPS.items() if sign in system), "summary")
        self.steps.append(step)
        if given := self.instead.get(step):
            said = given.pop(0)
            if said == -1:
                os.kill(os.getpid(), signal.SIGINT)
            if said in (0, -1):
                self.let_go.wait(30)
            return said
        return str(getattr(self, step)(user)) if step != "answer" else self.answer(body)

    def summary(self, user: str) -> str:
        return "Goal: the user asked for orders, and got them."

    def part(self, user: str) -> str:
        return "Here they are:\n" + json.dumps(
            [{"question": f"Which [order]? {at}", "facts": FACTS} for at in range(2)]
        )

    def absent(self, user: str) -> str:
        words = ("zeppelin", "ORD00003")  # the second one occurs
        return json.dumps([{"question": f"Where is {word}?", "word": word} for word in words])

    def answer(self, body: dict[str, Any]) -> Said:
        """It reads back once where it can, and knows no more without."""
        if "tools" not in body:
            return "The record does not say it."
        if len(body["messages"]) > 2:
            return f"It is blue: {body['messages'][-1]['content'][:60]}"
        function = {"name": "recall", "arguments": json.dumps({"words": "ORD00003"})}
        return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}

    def grade(self, user: str) -> str:
        """It sees what an answer says, and not from which view it is."""
        labels = {label: user.partition(f"Answer {label}: ")[2].partition("\n\n")[0] for label in "ABC"}
        return json.dumps({label: [2] if "blue" in text else [] for label, text in labels.items()})


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
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test runner may have it ignored
    try:
        return call("exam", "session.jsonl", "--provider", server.address, "--model", model, *NARROW, "--yes", *options)
    finally:
        signal.signal(signal.SIGINT, before)


def few() -> tuple[str, Path]:
    """The option for two questions, which take no calls."""
    questions = [{"kind": kind, "text": f"{kind}?", "facts": FACTS} for kind in ("why", "done")]
    return "--questions", store(Path("few.json"), [questions])


def kept(name: str = "session.jsonl.exam.json") -> dict[str, Any]:
    return dict(json.loads(Path(name).read_text()))


def test_a_model_is_examined_and_all_is_kept(server: ChatServer, model: Examinee) -> None:
    """Ten questions and the absent one whose name does not occur; recall answers what the request does not hold."""
    told = exam(server, "--questions", "q.json")

    assert told.exit_code == 0, told.output
    assert " some 0." in told.stderr
    assert "dollars at list prices of GPT-6.2 Sol" in told.stderr
    assert {step: model.steps.count(step) for step in ("part", "absent", "answer", "grade")} == {
        "part": 5,
        "absent": 1,
        "answer": 4 * 11,
        "grade": 11,
    }
    data = kept()
    assert [one["kind"] for one in data["questions"]] == [*["user", "done", "artifact", "why", "next"] * 2, "absent"]
    assert data["questions"] == json.loads(Path("q.json").read_text())
    assert data["used"] == {"calls": 61, "input": 61 * 900, "output": 61 * 50}
    assert [*data["answers"]["1"]] == ["request", "recall", "newest"]
    [asked] = data["answers"]["1"]["recall"]["recalls"]
    assert asked == {"words": "ORD00003"}
    assert "ORD00003" in server.bodies[-12]["messages"][1]["content"] or "[" in data["answers"]["1"]["recall"]["text"]
    assert data["grades"]["1"] == {"request": 0, "recall": 1, "newest": 0}
    assert data["results"][-1]["facts"] == {"request": 0, "recall": 10, "newest": 0}
    row = next(line.split() for line in told.stdout.splitlines() if line.startswith("all "))
    assert row == ["all", "11", "0", "of", "21", "10", "of", "21", "0", "of", "21"]
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
    model.instead = {"part": ["Sure!", '[{"question": "half'], "grade": ['{"A": 1}']}
    told = exam(server)
    assert told.exit_code == 3
    assert len(kept()["questions"]) == 9
    assert 'its answer is not the JSON that was asked for: \'[{"question": "half\'' in told.stderr

    for step in ("part", "absent"):
        model.instead[step] = ["I am a teapot."] * 10
    told = exam(server, "--json", "other.json")
    assert told.exit_code == 2
    assert told.stderr.splitlines()[-1].startswith("Error: gpt-6.2-sol wrote no question: its answer is not the JSON")


@pytest.mark.parametrize("said", [{"refusal": ""}, 400])
def test_a_refusal_costs_one_answer_and_the_next_run_asks_for_it_alone(
    server: ChatServer, model: Examinee, said: Said
) -> None:
    model.instead = {"answer": [said, "I will not say that."]}
    told = exam(server, *few())
    assert told.exit_code == 3
    assert told.stderr.splitlines()[-1].startswith("MISSING: 1 answer of the model; the same command asks again. ")
    assert "error" in kept()["answers"]["1"]["request"]
    assert kept()["answers"]["2"]["request"]["text"] == "I will not say that."

    model.steps.clear()
    assert exam(server, *few()).exit_code == 0
    assert model.steps == ["answer", "grade"], "the summaries are kept too"


def test_grades_that_are_no_json_are_asked_for_again_by_the_next_run(server: ChatServer, model: Examinee) -> None:
    model.instead = {"grade": ["Well done!"] * 2}
    told = exam(server, *few())
    assert told.exit_code == 3
    assert "MISSING: 1 answer of the model" in told.stderr
    assert kept()["results"][-1]["questions"] == 1

    model.steps.clear()
    told = exam(server, *few())
    assert (told.exit_code, model.steps) == (0, ["grade"])
    assert kept()["results"][-1]["questions"] == 2


def test_a_model_that_rambles_is_cut_off(server: ChatServer, model: Examinee) -> None:
    model.instead = {"answer": ["word " * 50_000]}
    assert exam(server, *few()).exit_code == 0
    assert len(kept()["answers"]["1"]["request"]["text"]) == 4_000


def test_a_model_that_calls_recall_for_ever_is_not_followed(server: ChatServer, model: Examinee) -> None:
    function = {"name": "recall", "arguments": '{"words": "x"}'}
    calls: Said = {"content": "Hm.", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    model.instead = {"answer": [*["No."] * 2, *[calls] * 5]}
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
    told = exam(server, *few(), "--timeout", "1" if said == 0 else "30")
    assert told.exit_code == 2
    assert told.stderr.splitlines()[-1].startswith(says)
    assert [kept()["answers"][at]["request"].get("text") for at in "12"] == ["Blue.", "Red."]

    model.instead.clear()
    model.let_go.set()
    model.steps.clear()
    assert exam(server, *few(), "--timeout", "1" if said == 0 else "30").exit_code == 0
    assert model.steps.count("answer") == 4 * 2 - 2
    assert {"part", "absent", "summary"}.isdisjoint(model.steps)


@pytest.mark.parametrize("step", ["summary", "part", "answer", "grade"])
def test_ctrl_c_keeps_what_was_paid_for(server: ChatServer, model: Examinee, step: str, no_hang: None) -> None:
    """In each step: the second run asks for what the first has not got."""
    good = {"part": model.part(""), "grade": model.grade("")}.get(step, "Goal: it was done.")
    model.instead = {step: [good, -1]}
    told = exam(server)
    assert (told.exit_code, told.stderr.splitlines()[-1]) == (130, "Interrupted.")

    model.instead.clear()
    model.let_go.set()
    second = exam(server)
    assert second.exit_code == 0, second.output
    asked = {name: model.steps.count(name) for name in ("part", "absent", "answer", "grade")}
    once = {"part": 5, "absent": 1, "answer": 44, "grade": 11}
    if step in once:
        once[step] += 1  # the one that was interrupted
    assert asked == once


def test_without_a_model_the_pipe_runs_and_recall_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "session.jsonl", SESSION)
    told = call("exam", "session.jsonl", "--provider", "offline", *NARROW)
    assert told.exit_code == 0, told.output
    facts = kept("session.jsonl.offline.exam.json")["results"][-1]["facts"]
    assert facts["recall"] > facts["newest"]
