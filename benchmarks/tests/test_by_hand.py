"""A session played by hand: what is asked for through files, and how answers are shuffled and scored."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.by_hand import main, scores, shuffled, table
from tests.support.rows import tool_session

ROWS = tool_session(24)
QUESTIONS = [
    {"id": 1, "kind": "user", "question": "Which order?", "facts": ["ORD00001"]},
    {"id": 2, "kind": "why", "question": "Why?", "facts": ["it was late"]},
]
ARMS = {"ours": {"1": "ORD00001", "2": "late"}, "newest": {"1": "not in the record", "2": "late"}}


def test_a_session_is_played_until_no_summary_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A merge is asked for once its parts are written; an instruction stands once in a file."""
    rows, work, rounds = tmp_path / "rows.jsonl", tmp_path / "work", 0
    rows.write_text("\n".join(map(json.dumps, ROWS)))
    while True:
        main(["play", str(rows), str(work), "--window", "2500"])
        if "nothing is missing" in capsys.readouterr().out:
            break
        rounds += 1
        for file in work.glob("todo-*.txt"):
            text = file.read_text()
            assert text.startswith("######## INSTRUCTION")
            for name in re.findall(r"^#+ PART: write its summary to (.*) #+$", text, re.M):
                (work / "answers" / name.rsplit("/", 1)[-1]).write_text(f"Written by hand in round {rounds}.")
    assert rounds > 1
    request = (work / "request.txt").read_text()
    assert "Written by hand in round" in request
    assert "PENDING" not in request
    assert len((work / "newest.txt").read_text()) <= len(request) < len((work / "history.txt").read_text())


def test_answers_are_graded_without_their_arm() -> None:
    sheet = shuffled(QUESTIONS, ARMS)
    assert sorted(entry["answer"] for entry in sheet) == ["ORD00001", "late", "late", "not in the record"]
    assert not any("ours" in str(entry) for entry in sheet)
    grades = {str(entry["number"]): float(entry["answer"] != "not in the record") for entry in sheet}
    assert scores(QUESTIONS, ARMS, sheet, grades) == {
        "ours": {"user": 1.0, "all": 1.0, "why": 1.0},
        "newest": {"user": 0.0, "all": 0.5, "why": 1.0},
    }


def test_a_kept_exam_is_told_by_arm_and_kind() -> None:
    """Where several people graded an answer, their mean counts."""
    graded = [{"kind": "user", "grades": {"ours": [1, 0.5], "newest": [0]}}, {"kind": "why", "grades": {"ours": [1]}}]
    assert table({"questions": graded}) == {
        "ours": {"user": 0.75, "all": 1.75, "why": 1.0},
        "newest": {"user": 0.0, "all": 0.0},
    }
