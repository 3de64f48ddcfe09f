"""`inspect`, `prompts` and `cache`: what a recording holds, problems of a set and a copy of it, stored summaries."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from context_summarize import __version__
from context_summarize.cli import main
from context_summarize.summaries.prompts import available_sets
from tests.support.cli import NARROW, call, plain_terminal, recorded, refusal, store  # noqa: F401
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
    assert re.findall(r"^  ([a-z]+)  ", call("-h").stdout, re.MULTILINE) == ["cache", "inspect", "prompts", "replay"]


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
    told = call("prompts", "copy", "coding", tmp_path / "mine")
    assert told.exit_code == 0, told.output
    return tmp_path / "mine"


def test_every_set_of_the_package_and_a_copy_pass_the_check(mine: Path) -> None:
    assert sorted(path.name for path in mine.iterdir()) == ["merge.md", "segment.md"]
    for name in (*available_sets(), mine):
        told = call("prompts", "check", name)
        assert (told.exit_code, told.stderr) == (0, "")
        assert told.stdout.endswith("no problems\n")


def test_check_tells_every_problem_one_a_line_and_ends_with_1(mine: Path) -> None:
    """A replay names the first, and the command that lists them."""
    (mine / "merge.md").unlink()
    with (mine / "segment.md").open("a", encoding="utf-8") as segment:
        segment.write("\n$nonsense\n")

    told = call("prompts", "check", mine)

    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert any("merge.md: missing; a prompt set needs" in line for line in lines)
    assert any("unknown variable $nonsense" in line for line in lines)
    assert told.stderr == f"FAILED: {len(lines)} problems\n"
    first = refusal("replay", store(mine.parent / "a.jsonl", [user("a")]), "--config", f"prompts={mine}")
    assert first.startswith(f"Error: {lines[0]}")
    assert first.endswith(f"; `context-summarize prompts check {mine}` lists all {len(lines)} problems")


def test_check_tells_all_problems_of_one_file_at_once(mine: Path) -> None:
    """Those of its header, and those of its text, whatever else is wrong."""
    (mine / "merge.md").write_text("---\nversoin: 1\nruler: a\n---\nIt costs $5, or $ 6: $wrods $count", "utf-8")
    lines = call("prompts", "check", mine).stdout.splitlines()
    told = (
        "'versoin'",
        "'ruler'",
        "'$5, or $ 6: '",
        "'$ 6: $wrods '",
        "$wrods (did you",
        "$fence is miss",
        "$words is miss",
    )
    assert [says in line for says, line in zip(told, lines, strict=True)] == [True] * 7


def test_check_warns_of_a_set_that_asks_for_no_quoted_instructions(mine: Path) -> None:
    """Without a heading in the header, or in the text; it is no problem."""
    segment = mine / "segment.md"
    text = segment.read_text("utf-8")
    for lacking in (text.replace("rules_heading: Standing rules\n", ""), text.replace("Standing rules: ", "Rules: ")):
        segment.write_text(lacking, "utf-8")
        told = call("prompts", "check", mine)
        assert told.exit_code == 0
        assert told.stdout.endswith("no problems\n")
        assert re.match("WARNING: .*rules_heading", told.stderr)


def test_a_set_that_is_not_there_or_would_be_overwritten_is_one_line(mine: Path) -> None:
    """What is there stays as it is; a name does not steer the terminal."""
    before = {path.name: path.read_bytes() for path in mine.iterdir()}

    assert "exists and is left unchanged" in refusal("prompts", "copy", "brief", mine)
    assert "(Not a directory); name another folder" in refusal("prompts", "copy", "brief", mine / "merge.md" / "x")
    assert "available: brief, coding" in refusal("prompts", "check", "nix")
    assert "available: brief, coding" in refusal("prompts", "copy", "nix", mine.parent / "new")
    assert "\x1b" not in refusal("prompts", "check", "\x1b[31mnix")
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "kept.sqlite3"
    assert call("replay", recorded(tmp_path), *NARROW, "--config", f"cache={path}").exit_code == 0
    return path


def test_the_cache_is_told_and_cleared_once_that_is_confirmed(filled: Path) -> None:
    """No answer, and no for an answer, leave all there is; exit status 1. No text is left on the disk."""
    data, told = as_json("cache", "stats", "--cache", filled), call("cache", "stats", "--cache", filled).stdout

    assert data.keys() == {"path", "bytes", "entries", "oldest", "newest"}
    assert (data["path"], data["bytes"]) == (str(filled), filled.stat().st_size)
    assert data["newest"] > data["oldest"] > 0
    assert b"ORD0000" in filled.read_bytes()
    assert re.search(rf"^Entries +{data['entries']:,}  summaries", told, re.MULTILINE)
    assert re.search(r"^Oldest +20\d\d-\d\d-\d\d \d\d:\d\d  UTC", told, re.MULTILINE)
    for answer, left in (("", data["entries"]), ("\n", data["entries"]), ("n\n", data["entries"]), ("y\n", 0)):
        cleared = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input=answer)
        assert cleared.exit_code == (left > 0), cleared.output
        assert as_json("cache", "stats", "--cache", filled)["entries"] == left
    assert f"Removed {data['entries']} entries." in cleared.stdout
    assert filled.stat().st_size < data["bytes"]
    assert b"ORD0000" not in b"".join(file.read_bytes() for file in filled.parent.glob(f"{filled.name}*"))


@pytest.mark.parametrize("command", [["stats"], ["clear", "--yes"]])
def test_what_is_no_file_of_summaries_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """A folder, another file, a server's address without its password, memory, a bare word; an option.

    A file of the user that was named by mistake stays as it is, and nobody is advised to delete it.
    """
    monkeypatch.chdir(tmp_path)
    Path("notes.db").write_text("not a database, and long enough to be looked at" * 100)
    for name, program in (("new.db", 1668577395), ("other.db", 7)):
        with closing(sqlite3.connect(name)) as made:
            made.executescript(f"CREATE TABLE x (y); PRAGMA application_id = {program}; PRAGMA user_version = 9")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    for cache, says in (
        ("./", ": it is a folder; name a file"),
        ("new.db", "new.db: it is of version 9, and this program reads version 2; name another"),
        ("other.db", "other.db: it is another program's database; name another file"),
        ("notes.db", "notes.db: file is not a database; name another file"),
        ("redis://me:word@127.0.0.1:1/0?a=word", "cache: redis://127.0.0.1:1/0 is not a file, and only a file can be"),
        ("memory", "cache: memory is not a file, and only a file can be shown or cleared; name one"),
        ("notes", "cache: 'notes' is not a file; write a path with a folder, as in ./name, or one that ends in .db"),
    ):
        told = refusal("cache", *command, "--cache", cache)
        assert told.startswith("Error: ")
        assert says in told
        assert "word" not in told
        assert "delete" not in told
    assert call("cache", *command, "--cache", "--json").exit_code == 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
