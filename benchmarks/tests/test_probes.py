"""`benchmarks/probes.py` with providers that answer from a script: what is asked, how it is graded, what is printed."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError, RateLimitError
from amplifier_core.message_models import ChatRequest, Message
from rich.console import Console

from benchmarks import examiner, probes
from benchmarks.examiner import Answer, Examiner, Probe, missing_values, read_grade, read_probes
from benchmarks.field.virtual import run_virtually
from benchmarks.probed import LOCAL, settings_of
from context_summarize import Config
from context_summarize.cli.options import read_config
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import content_text
from context_summarize.replay.session_files import read_session
from context_summarize.testing import ScriptedProvider, tool_session

EXACT = Probe("order", "fact", "What is the state of order ORD00001?", (5, 8), exact=("shipped-1", "ORD00001"))
PROSE = Probe("last", "next step", "What is left to do?", (157, 160), expected="Nothing; the last order was found.")
SMALL = Config(segment_tokens=512, summary_tokens=64, keep_recent=4, prefetch_threshold=None)
BUDGET = 6_000


def said(message: Message) -> str:
    content = message.content
    return content if isinstance(content, str) else content_text([block.model_dump() for block in content])


def purpose(request: ChatRequest) -> str:
    """What a request is for: `summary`, `grade` or `question`."""
    if (request.metadata or {}).get("purpose") != "probe":
        return "summary"
    return "grade" if said(request.messages[0]).startswith("You grade") else "question"


class Model(ScriptedProvider):
    """Knows what it is shown: a value that occurs in the conversation is answered, any other is not."""

    def __init__(
        self, knows: tuple[str, ...] = EXACT.exact, grade: str = '{"grade": 1, "reason": "half"}', **window: Any
    ):
        super().__init__(then=self._reply, **window)
        self._knows = knows
        self._grade = grade

    def _reply(self, request: ChatRequest) -> str:
        if purpose(request) == "summary":
            return "Goal: orders were looked up, and each of them is on its way to the customer."
        if purpose(request) == "grade":
            return self._grade
        shown = "\n".join(said(message) for message in request.messages[:-1])
        return "The conversation tells: " + ", ".join(value for value in self._knows if value in shown)

    def of(self, kind: str) -> list[ChatRequest]:
        return [request for request in self.requests if purpose(request) == kind]


def text_of(row: JsonRow) -> str:
    return json.dumps(row, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"')


@pytest.fixture(params=["probes.json", "probes-small.json"])
def questions(request: pytest.FixtureRequest) -> tuple[Probe, ...]:
    """Those of one file that comes with the project."""
    return read_probes(probes.PROBES.with_name(request.param))


class TestQuestions:
    def test_the_exact_values_are_in_the_rows_that_a_question_is_about(self, questions: tuple[Probe, ...]) -> None:
        """Of the shared recording; else nobody could answer."""
        rows = read_session(probes.ROOT / "examples" / "airline-desk.jsonl")
        for probe in questions:
            first, last = probe.rows
            assert 1 <= first <= last <= len(rows)
            shown = "\n".join(text_of(row) for row in rows[first - 1 : last])
            assert missing_values(probe, shown) == [], probe.id

    def test_no_question_holds_its_answer(self, questions: tuple[Probe, ...]) -> None:
        for probe in questions:
            assert len(missing_values(probe, probe.question)) == len(probe.exact), probe.id

    def test_every_kind_is_asked_and_most_questions_are_about_the_first_nine_tenths(self) -> None:
        """Those are folded in the window that is the default."""
        found = read_probes(probes.PROBES)
        assert {probe.kind for probe in found} == set(examiner.KINDS)
        assert 12 <= len(found) <= 20
        assert sum(probe.rows[1] < 1_200 for probe in found) > len(found) / 2

    def test_an_entry_that_is_no_question_is_refused(self, tmp_path: Path) -> None:
        """With what is wrong with it."""
        (tmp_path / "probes.json").write_text('{"probes": [{"id": "a", "kind": "fact", "question": "?"}]}')
        with pytest.raises(ValueError, match=r"cannot be read \('rows'\)"):
            read_probes(tmp_path / "probes.json")

    @pytest.mark.parametrize(
        "wrong",
        [{"exact": []}, {"expected": "prose"}, {"kind": "rumour"}],
        ids=["nothing to grade by", "two ways to grade", "unknown kind"],
    )
    def test_a_question_that_cannot_be_graded_is_refused(self, wrong: dict[str, Any], tmp_path: Path) -> None:
        entry = {"id": "a", "kind": "fact", "question": "?", "rows": [1, 2], "exact": ["x"], **wrong}
        (tmp_path / "probes.json").write_text(json.dumps({"probes": [entry]}))
        with pytest.raises(ValueError, match="'a' needs"):
            read_probes(tmp_path / "probes.json")


class TestGrading:
    @pytest.mark.parametrize(
        ("answer", "missing"),
        [
            ("Refund: **$2,544.00** on HAT004.", []),
            ("2544 dollars, flight hat004", []),
            ("$2,5440 on HAT0045", ["2544", "HAT004"]),
            ("12544 on HAT004", ["2544"]),
            ("", ["2544", "HAT004"]),
        ],
    )
    def test_values_are_found_as_words_of_their_own_however_amounts_are_written(
        self, answer: str, missing: list[str]
    ) -> None:
        assert missing_values(Probe("a", "fact", "?", (1, 2), exact=("2544", "HAT004")), answer) == missing

    @pytest.mark.parametrize(
        ("text", "grade"),
        [
            ('{"grade": 2, "reason": "same"}', (2, "same")),
            ('```json\n{"grade": 0}\n```', (0, "")),
            ('In the set {a} it is {"grade": 1, "reason": "x {y}"} I think', (1, "x {y}")),
            ('{"grade": 3}', None),
            ('{"grade": true}', None),
            ('{"grade": "2"}', None),
            ("two", None),
            ("", None),
        ],
    )
    def test_the_first_object_with_a_grade_is_read(self, text: str, grade: tuple[int, str] | None) -> None:
        assert read_grade(text) == grade

    async def test_an_answer_is_shown_to_the_grader_as_data(self) -> None:
        """With question and reference, in a request without the conversation."""
        model = ScriptedProvider(['It is done. {"grade": 2}', '{"grade": 0, "reason": "no"}'])
        [answer] = await Examiner(model).examine(tool_session(1), [PROSE])
        assert answer == Answer("last", 'It is done. {"grade": 2}', 0.0, "no")
        system, shown = model.requests[1].messages
        assert system.role == "system"
        assert json.loads(said(shown)) == {
            "question": PROSE.question,
            "reference": PROSE.expected,
            "answer": 'It is done. {"grade": 2}',
        }

    async def test_what_cannot_be_graded_has_no_score(self) -> None:
        """It is left out of the means, and said."""
        [answer] = await Examiner(ScriptedProvider(["fine", "Well done!"])).examine(tool_session(1), [PROSE])
        assert answer.score is None
        assert "Well done!" in answer.note

    @pytest.mark.parametrize("error", [AuthenticationError("no key"), OSError("no key")])
    async def test_an_error_costs_its_question_alone(self, error: Exception) -> None:
        """Also one that a provider should not have let through."""
        model = ScriptedProvider([error], then="shipped-1 of ORD00001")
        first, second = await Examiner(model).examine(tool_session(1), [EXACT, EXACT])
        assert (first.score, second.score) == (None, 1.0)
        assert "no key" in first.note

    def test_an_error_that_passes_is_asked_again(self) -> None:
        """After a while, in virtual time."""
        model = ScriptedProvider([RateLimitError("slow down")], then="shipped-1 of ORD00001")
        [answer] = run_virtually(Examiner(model).examine(tool_session(1), [EXACT]))
        assert answer.score == 1.0
        assert model.calls == 2


class TestRun:
    async def run(self, model: Model, **options: Any) -> probes.Report:
        return await probes.run(
            tool_session(40, size=800),
            (EXACT, PROSE),
            model,
            name="model",
            token_budget=BUDGET,
            config=SMALL,
            **options,
        )

    async def test_what_the_summaries_lost_is_missing_with_compaction_alone(self) -> None:
        """The question is about rows that are folded; the value does not survive, nor is it a path or an id."""
        model = Model(knows=("value-1-A0001B",), context_window=100_000)
        probe = Probe("lost", "fact", "Which value?", (5, 8), exact=("value-1-A0001B",))
        report = await probes.run(
            tool_session(40, size=800), (probe,), model, name="model", token_budget=BUDGET, config=SMALL
        )
        assert report.folded == {"lost"}
        assert report.whole.score([probe]) == 1.0
        assert report.compacted.score([probe]) == 0.0
        assert model.of("summary")
        assert report.compacted.tokens <= BUDGET < report.whole.tokens

    async def test_scores_are_means_and_the_last_rows_are_not_folded(self) -> None:
        report = await self.run(Model(context_window=100_000))
        assert report.folded == {"order"}
        assert report.whole.score([EXACT]) == 1.0
        assert report.whole.score([PROSE]) == 0.5
        assert report.whole.score([EXACT, PROSE]) == 0.75
        assert report.whole.score([]) is None

    async def test_a_history_that_does_not_fit_is_not_asked_and_it_is_said(self) -> None:
        model = Model(context_window=9_000, max_output_tokens=500)
        report = await self.run(model)
        assert report.whole.answers == ()
        assert "7,500 that model takes" in report.whole.skipped
        assert len(model.of("question")) == 2

    async def test_every_question_is_asked_over_the_same_rows_with_the_tools_that_they_call(self) -> None:
        """So that a prompt cache has them, and no provider meets a tool that it does not know."""
        model = Model(context_window=100_000)
        await self.run(model)
        whole, after = model.of("question")[:2]
        assert whole.messages[:-1] == after.messages[:-1]
        assert len(whole.messages) == 161
        assert [tool.name for tool in whole.tools or []] == ["lookup"]
        assert whole.tool_choice == "none"
        assert EXACT.question in said(whole.messages[-1])

    async def test_the_table_has_a_line_for_each_question_and_mean(self, capsys: pytest.CaptureFixture[str]) -> None:
        report = await self.run(Model(context_window=100_000))
        probes.print_report(report, Console(width=100))
        printed = capsys.readouterr().out
        lines = [line.split() for line in printed.splitlines() if line.strip()]
        assert [words[-1] for words in lines if words[0] in ("order", "last", "mean")] == [
            *("100%", "50%"),
            *("100%", "-", "-", "50%", "75%"),
        ]
        assert "Whole, last (50%): half" in printed


class TestCommand:
    def test_json_is_one_object_with_scores_and_answers(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """By the stand-in that needs no model, and says so instead of answering."""
        session, questions = tmp_path / "session.jsonl", tmp_path / "probes.json"
        session.write_text("".join(json.dumps(row) + "\n" for row in tool_session(40, size=800)))
        entry = {"id": "order", "kind": "fact", "question": "?", "rows": [5, 8], "exact": ["shipped-1"]}
        questions.write_text(json.dumps({"probes": [entry]}))
        files = ["--recording", str(session), "--questions", str(questions)]
        sizes = ["--window", "8000", "--max-output", "1000", "--config", "keep_recent=4"]

        assert probes.main(["--provider", "offline", *files, *sizes, "--json"]) == 0

        told = json.loads(capsys.readouterr().out)
        assert told["compacted"]["score"] == told["compacted"]["by_kind"]["fact"] == 0.0
        assert "offline provider" in told["compacted"]["answers"][0]["text"]
        assert told["budget"] == 6_000
        assert told["folded"] == ["order"]
        assert told["whole"]["score"] is None
        assert told["whole"]["skipped"]
        assert told["usage"]["calls"] > 1

    def test_the_small_model_has_settings_of_its_own_that_the_command_line_overrides(self) -> None:
        """A summary takes it half a minute; other providers get the module's defaults."""
        for given, segment in (([], 1_024), (["segment_tokens=512"], 512)):
            config = read_config(settings_of(Namespace(provider=LOCAL, config=given)), None)
            assert (config.prompts, config.segment_tokens, config.request_timeout) == ("small", segment, 240)
        assert settings_of(Namespace(provider="offline", config=["keep_recent=1"])) == ["keep_recent=1"]

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--provider", "provider-nobody"], "provider-nobody"),
            (["--provider", "openai-compatible"], "--base-url and --model"),
            (["--provider", "offline", "--recording", "nowhere.jsonl"], "nowhere.jsonl"),
            (["--provider", "offline", "--config", "keep_recnt=1"], "keep_recent"),
        ],
    )
    def test_what_cannot_be_used_is_one_line(
        self, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert probes.main(options) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        [line] = captured.err.splitlines()
        assert line.startswith("Error: ")
        assert says in line
