"""`inspect` and `prompts`: what a recording holds, where a prompt set is, and what is wrong with it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from context_summarize import __version__
from context_summarize.summaries.prompts import available_sets
from tests.support.cli import call, plain_terminal, refusal, store  # noqa: F401
from tests.support.rows import assistant, result, tool_session, user
from tests.support.rows import call as asks

HOST = {"role": "system", "content": "Be kind. " * 900}


def as_json(*arguments: object) -> dict[str, Any]:
    """What a command prints with `--json`."""
    told = call(*arguments, "--json")
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    data: dict[str, Any] = json.loads(told.stdout)
    return data


def test_version_and_commands_are_told() -> None:
    assert __version__ in call("--version").stdout
    commands = re.findall(r"^  ([a-z]+)  ", call("-h").stdout, re.MULTILINE)
    assert commands == ["exam", "inspect", "prompts", "replay"]


def test_a_recording_is_told_by_roles_tools_and_largest_rows(tmp_path: Path) -> None:
    data = as_json("inspect", store(tmp_path / "a.jsonl", [HOST, *tool_session(40)]))

    assert (data["file"], data["rows"], data["messages"]) == ("a.jsonl", 161, 160)
    roles = {role["role"]: role for role in data["roles"]}
    assert [roles[name]["rows"] for name in ("system", "user", "assistant", "tool")] == [1, 40, 80, 40]
    assert sum(role["tokens"] for role in data["roles"]) == data["tokens"]
    tool = {"tool": "lookup", "calls": 40, "results": 40, "tokens": roles["tool"]["tokens"]}
    assert data["tools"] == [tool]
    largest = {"message": "", "tokens": roles["system"]["tokens"], "role": "system", "tool": ""}
    assert data["largest"][0] == largest
    assert data["largest"][1].items() >= {"role": "tool", "tool": "lookup"}.items()
    assert data["largest"][1]["message"] % 4 == 3
    assert data.keys() - {"file", "rows", "messages", "tokens", "roles", "tools", "largest"} == {
        *("unanswered_calls", "orphan_results")
    }


def test_broken_pairs_are_counted_and_named(tmp_path: Path) -> None:
    """A call at the end may still get its result."""
    rows = [user("a"), asks("1", "look"), user("b"), asks("2", "list"), assistant("c"), asks("3", "late")]
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "x"}]}
    broken = store(tmp_path / "a.jsonl", [HOST, *rows, orphan])

    data, told = as_json("inspect", broken), call("inspect", broken).stdout

    assert (data["unanswered_calls"][:2], data["orphan_results"]) == (["look in message 2", "list in message 4"], 1)
    assert "calls without a result: look in message 2, list in message 4" in told
    assert "1 result without a call." in told
    fine = as_json("inspect", store(tmp_path / "b.jsonl", [user("a"), asks("1"), result("1"), asks("2")]))
    assert (fine["unanswered_calls"], fine["orphan_results"]) == ([], 0)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    told = call("prompts", "coding")
    assert told.exit_code == 0, told.output
    return Path(shutil.copytree(told.stdout.strip(), tmp_path / "mine"))


def test_every_set_of_the_package_and_a_copy_pass_the_check_which_says_where_they_are(mine: Path) -> None:
    assert sorted(path.name for path in mine.iterdir()) == ["merge.md", "segment.md"]
    for name in (*available_sets(), mine):
        told = call("prompts", name)
        assert (told.exit_code, told.stderr) == (0, "")
        assert Path(told.stdout.strip()).name == Path(str(name)).name


def test_every_problem_of_every_file_is_told_at_once(mine: Path) -> None:
    """Those of a header, and those of a text, whatever else is wrong; a replay tells the same."""
    (mine / "segment.md").unlink()
    (mine / "merge.md").write_text("---\nversoin: 1\nruler: a\n---\nIt costs $5, or $ 6: $wrods $count", "utf-8")
    told = call("prompts", mine)
    assert (told.exit_code, told.stdout) == (2, "")
    first, *lines = told.stderr.splitlines()
    assert first == "Error: the prompt set has 8 problems:"
    says = (
        "segment.md: missing; a prompt set needs",
        "'versoin'",
        "'ruler'",
        "'$5, or $ 6: '",
        "'$ 6: $wrods '",
        "$wrods (did you",
        "$fence is miss",
        "$words is miss",
    )
    assert [word in line for word, line in zip(says, lines, strict=True)] == [True] * 8
    played = call("replay", store(mine.parent / "a.jsonl", [user("a")]), "--config", f"prompts={mine}")
    assert (played.exit_code, played.stderr) == (2, told.stderr)


def test_a_set_that_asks_for_no_quoted_instructions_is_warned_of(mine: Path) -> None:
    """Without a heading in the header, or in the text; it is no problem."""
    segment = mine / "segment.md"
    text = segment.read_text("utf-8")
    for lacking in (text.replace("rules_heading: Standing rules\n", ""), text.replace("Standing rules: ", "Rules: ")):
        segment.write_text(lacking, "utf-8")
        told = call("prompts", mine)
        assert told.exit_code == 0
        assert re.match("WARNING: .*rules_heading", told.stderr)


def test_a_set_that_is_not_there_is_one_line() -> None:
    """A name does not steer the terminal."""
    assert "available: brief, coding" in refusal("prompts", "nix")
    assert "\x1b" not in refusal("prompts", "\x1b[31mnix")
