"""The data sets of real conversations: how they are read, and what is never read."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.real import DataMissingError, beam, coding, fetch, recordings
from benchmarks.real.pi import row_of
from benchmarks.real.recall import recalled
from benchmarks.sessions import Question, Session
from benchmarks.tokens import broken_pairs, calls_of, text_of


@pytest.mark.parametrize(("size", "number"), [("100K", 11), ("100K", 20), ("500K", 5), ("1M", 1)])
def test_a_chat_that_is_held_back_is_never_read(tmp_path: Path, size: str, number: int) -> None:
    with pytest.raises(DataMissingError, match="held back"):
        beam.load(size, number, tmp_path)


def test_a_session_of_pi_keeps_pairs_whole(tmp_path: Path) -> None:
    def call(name: str) -> dict[str, object]:
        return {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": "/x"}}

    said = [{"type": "text", "text": "Reading."}, call("a"), call("aborted")]
    done = {"role": "toolResult", "toolCallId": "a", "toolName": "read", "content": [{"type": "text", "text": "x"}]}
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": said}, done]
    (tmp_path / "pi-mono").mkdir()
    lines = [json.dumps({"type": "message", "message": one}) for one in messages]
    (tmp_path / "pi-mono" / "s.jsonl").write_text("\n".join([json.dumps({"type": "session"}), *lines]))
    (session,) = coding.load_all(tmp_path)
    assert [call["id"] for call in calls_of(session.rows[1])] == ["a"]
    assert broken_pairs(session.rows) == 0
    assert row_of(done) == session.rows[2]


HISTORY = """<!-- Claude Code Session {id}-2330 (2026) -->

_**User (2026)**_

Look at it.

---

_**Agent (claude 2026)**_

<tool-use data-tool-type="read" data-tool-name="Read"><details>
<summary>Tool use: **Read**</summary>
- `./pkg/main.go`

```text
1 package main
```
</details></tool-use>

_**Agent - sidechain (claude 2026)**_

Aside.
"""


def test_a_history_of_specstory_has_calls_with_results_and_no_side_chains(tmp_path: Path) -> None:
    (tmp_path / "specstory").mkdir()
    file = tmp_path / "specstory" / "one.md"
    file.write_text(HISTORY.format(id="3e14b6e6"))
    (session,) = coding.load_all(tmp_path)
    assert [row["role"] for row in session.rows] == ["user", "assistant", "tool"]
    assert calls_of(session.rows[1])[0]["arguments"] == {"input": "- `./pkg/main.go`"}
    assert text_of(session.rows[2]) == "1 package main"
    file.write_text(HISTORY.format(id="4e14b6e6"))
    with pytest.raises(DataMissingError, match="held back"):
        coding.load_all(tmp_path)


def test_the_recording_is_asked_for_the_newest_values() -> None:
    (session,) = recordings.load_all()
    assert len(session.questions) > 100
    assert all(one.golds[0] in text_of(session.rows[one.sources[0]]) for one in session.questions)


def test_recall_finds_the_source_of_a_question() -> None:
    rows = ({"role": "user", "content": f"Item {at}: the colour of the {at}th door is shade{at}."} for at in range(50))
    question = Question("What is the colour of the 7th door?", ("shade7",), sources=(7,))
    session = Session(name="s", rows=tuple(rows), questions=(question,))
    assert recalled(session) == {"recalls": 1, "recall_any": 1, "recall_gold": 1, "recall_gold_asked": 1}


def test_files_are_fetched_from_a_git_directory_and_refused_with_another_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x"]
    (tmp_path / "a.txt").write_text("hello")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    pin = {
        "repository": "r",
        "commit": commit,
        "licence": "MIT",
        "files": {"a.txt": hashlib.sha256(b"hello").hexdigest()},
    }
    monkeypatch.setattr(fetch, "PINS", {"good": pin, "bad": {**pin, "files": {"a.txt": "0" * 64}}})
    assert fetch.fetch("good", tmp_path / "into", tmp_path) == 1
    assert (tmp_path / "into" / "good" / "a.txt").read_text() == "hello"
    assert fetch.fetch("good", tmp_path / "into", tmp_path) == 0
    with pytest.raises(fetch.FetchError, match="another one"):
        fetch.fetch("bad", tmp_path / "into", tmp_path)
    with pytest.raises(fetch.FetchError, match="no git directory"):
        fetch.fetch("bad", tmp_path / "into", tmp_path / "into")
