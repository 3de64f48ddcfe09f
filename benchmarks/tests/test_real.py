"""The data sets of real conversations: how they are read, and what is never read."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.real import PINS, DataMissingError, coding, fetch, read
from benchmarks.real.pi import row_of
from benchmarks.real.recall import recalled
from benchmarks.sessions import Question, Session
from benchmarks.tokens import broken_pairs, calls_of, text_of


def pin(monkeypatch: pytest.MonkeyPatch, name: str, **halves: dict[str, str]) -> None:
    """Pins made-up files as a data set."""
    monkeypatch.setitem(PINS, name, {"repository": "r", "commit": "HEAD", **halves})


def test_a_session_of_pi_keeps_pairs_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(name: str) -> dict[str, object]:
        return {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": "/x"}}

    said = [{"type": "text", "text": "Reading."}, call("a"), call("aborted")]
    done = {"role": "toolResult", "toolCallId": "a", "toolName": "read", "content": [{"type": "text", "text": "x"}]}
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": said}, done]
    (tmp_path / "pi-mono").mkdir()
    told = [{"type": "session"}, *({"type": "message", "message": one} for one in messages)]
    (tmp_path / "pi-mono" / "s.jsonl").write_text("\n".join(map(json.dumps, told)))
    pin(monkeypatch, "pi-mono", open={"s.jsonl": ""})
    pin(monkeypatch, "specstory")
    (session,) = coding.load_all(data=tmp_path)
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


def test_a_history_of_specstory_is_read_with_its_half_and_has_calls_with_results_and_no_side_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "specstory").mkdir()
    for number in "347":
        (tmp_path / "specstory" / f"{number}.md").write_text(HISTORY.format(id=f"{number}e14b6e6"))
    pin(monkeypatch, "pi-mono")
    pin(monkeypatch, "specstory", open={"3.md": ""}, sealed={"4.md": ""})
    (session,) = coding.load_all(data=tmp_path)
    assert [row["role"] for row in session.rows] == ["user", "assistant", "tool"]
    assert calls_of(session.rows[1])[0]["arguments"] == {"input": "- `./pkg/main.go`"}
    assert text_of(session.rows[2]) == "1 package main"
    assert [one.name for one in coding.load_all(sealed=True, data=tmp_path)] == ["histories/4e14b6e6"]
    for path, sealed in (("4.md", False), ("7.md", False), ("3.md", True), ("7.md", True)):
        with pytest.raises(DataMissingError, match="held back"):
            read("specstory", path, sealed, tmp_path)


def test_recall_finds_the_source_of_a_question() -> None:
    rows = ({"role": "user", "content": f"Item {at}: the colour of the {at}th door is shade{at}."} for at in range(50))
    question = Question("What is the colour of the 7th door?", ("shade7",), sources=(7,))
    session = Session(name="s", rows=tuple(rows), questions=(question,))
    assert recalled(session) == {"recalls": 1, "recall_any": 1, "recall_gold": 1, "recall_gold_asked": 1}


def test_files_are_fetched_from_a_git_directory_sealed_ones_when_asked_for_and_refused_with_another_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x"]
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"hello")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    found = hashlib.sha256(b"hello").hexdigest()
    pin(monkeypatch, "good", open={"a.txt": found}, sealed={"b.txt": found})
    pin(monkeypatch, "bad", open={"a.txt": "0" * 64})
    into = tmp_path / "into"
    assert fetch.fetch("good", into, tmp_path) == 1
    assert [one.name for one in (into / "good").iterdir()] == ["a.txt"]
    assert fetch.fetch("good", into, tmp_path, sealed=True) == 1
    assert fetch.fetch("good", into, tmp_path, sealed=True) == 0
    with pytest.raises(fetch.FetchError, match="another one"):
        fetch.fetch("bad", into, tmp_path)
    with pytest.raises(fetch.FetchError, match="no git directory"):
        fetch.fetch("bad", into, into)
