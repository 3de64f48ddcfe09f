"""Sessions with a model's own summaries, what is judged at their cuts, and values without a summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cuts import Judge, summed
from benchmarks.real import PINS
from benchmarks.real.checkpoints import Cut, Recorded, load
from benchmarks.sessions import Session, assistant, called
from benchmarks.tokens import broken_pairs, calls_of, text_of


def entry(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "cwd": "/work/app", "message": {"id": "m", "content": content}, **more}


def use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Read", "input": {"file_path": "/work/app/a.py"}}


def test_a_session_file_gives_what_user_and_agent_said_and_where_a_model_summarised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [
        entry("user", "<command-name>/clear</command-name>"),
        entry("user", "Caveat: made by the host", isMeta=True),
        entry("user", "Look.<system-reminder>Be brief.</system-reminder>"),
        entry("assistant", [{"type": "text", "text": "Reading."}]),
        {"type": "progress"},
        entry("assistant", [use("a")]),
        entry("assistant", [use("aborted")]),
        {"type": "queue-operation", "operation": "enqueue", "content": "And b.py."},
        entry("user", [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x = 1"}]}]),
        {"type": "queue-operation", "operation": "remove"},
        entry("assistant", "Aside.", isSidechain=True),
        entry("user", "x was read", isCompactSummary=True),
        entry("assistant", [{"type": "text", "text": "Done."}]),
    ]
    (tmp_path / "entire" / "0").mkdir(parents=True)
    (tmp_path / "entire" / "0" / "full.jsonl").write_text("\n".join(map(json.dumps, told)))
    monkeypatch.setitem(PINS, "entire", {"open": {"0/full.jsonl": ""}})
    session, cuts, folder = load("0/full.jsonl", data=tmp_path)
    said = [(row["role"], text_of(row)) for row in session.rows]
    begun = [("user", "Look."), ("assistant", "Reading."), ("tool", "x = 1"), ("user", "And b.py.")]
    assert said == [*begun, ("assistant", "Done.")]
    assert [call["id"] for call in calls_of(session.rows[1])] == ["a"]
    assert broken_pairs(session.rows) == 0
    assert (cuts, folder) == ([Cut(at=4, summary="x was read")], "/work/app")


def test_at_a_cut_each_text_is_judged_by_what_comes_next_and_by_what_the_user_said() -> None:
    rows = (
        {"role": "user", "content": "Don't touch the tests! Rename the loader.\n> quoted by the user"},
        *called(1, "Read", {"file_path": "/work/app/src/load.py"}, "def load_all(): see docs/old.md, in_progress"),
        assistant("Reading was done.", []),
        *called(2, "Read", {"file_path": "/work/app/src/load.py", "status": "in_progress"}, "again"),
    )
    notes = "[Thread of messages 1 to 3: …]\nDON'T touch the 'tests'! src/load.py"
    judge = Judge(Recorded(Session(name="s", rows=rows), [Cut(3, "load_all of docs/old.md")], "/work/app"))
    judge(2, rows[:2])
    judge(3, [{"role": "system", "content": notes}, rows[2]])
    found = {text: summed([judge], text) for text in ("model", "view", "notes", "newest")}
    assert [found["notes"][kind] for kind in ("events", "sentences")] == [1, 2]
    assert [found["notes"][f"of_{kind}"] for kind in ("events", "sentences")] == [1, 0.5]
    assert [found["model"][f"of_{kind}"] for kind in ("events", "sentences")] == [0, 0]
    assert found["view"]["tokens"] > found["notes"]["tokens"]


def test_a_request_that_is_lost_at_a_cut_holds_nothing() -> None:
    """Neither the next request, after the agent has gone on, nor the end of the session makes up for it."""
    rows = ({"role": "user", "content": "Rename the loader, please."}, assistant("Done.", []), assistant("All.", []))
    for requests in ((2,), ()):
        judge = Judge(Recorded(Session(name="s", rows=rows), [Cut(1, "")], "/work/app"))
        for fed in requests:
            judge(fed, rows[:fed])
        judge.finish()
        found = summed([judge], "view")
        assert (found["cuts"], found["sentences"], found["of_sentences"]) == (1, 1, 0)
