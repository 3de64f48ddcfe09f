"""`prompts` and `cache`: every problem of a set, a copy to start from, what a file of summaries holds, its clearing."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from context_summarize import __version__
from context_summarize.cli import main
from context_summarize.summaries.prompts import available_sets
from tests.support.cli import NARROW, call, plain_terminal, recorded, refusal  # noqa: F401


def test_version_and_commands_are_told() -> None:
    """The help names every command and no other."""
    assert __version__ in call("--version").stdout
    assert re.findall(r"^  ([a-z]+)  ", call("-h").stdout, re.MULTILINE) == ["cache", "inspect", "prompts", "replay"]


# --- prompts ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of a set."""
    told = call("prompts", "copy", "coding", tmp_path / "mine")
    assert told.exit_code == 0, told.output
    return tmp_path / "mine"


def test_every_set_of_the_package_and_a_copy_pass_the_check(mine: Path) -> None:
    """A copy has three files and can be used as it is."""
    assert sorted(path.name for path in mine.iterdir()) == ["frame.md", "merge.md", "segment.md"]
    for name in (*available_sets(), mine):
        told = call("prompts", "check", name)
        assert (told.exit_code, told.stderr) == (0, "")
        assert told.stdout.endswith("no problems\n")


def test_check_tells_every_problem_one_a_line(mine: Path) -> None:
    """A missing file and an unknown variable are told together; the exit status is 1."""
    (mine / "merge.md").unlink()
    segment = mine / "segment.md"
    segment.write_text(segment.read_text("utf-8") + "\n$nonsense\n", "utf-8")

    told = call("prompts", "check", mine)

    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert any("merge.md: missing" in line for line in lines)
    assert any("unknown variable $nonsense" in line for line in lines)
    assert told.stderr == f"FAILED: {len(lines)} problems\n"


def test_check_warns_of_a_set_that_asks_for_no_quoted_instructions(mine: Path) -> None:
    """Without a heading in the header, or in the text; it is no problem."""
    segment = mine / "segment.md"
    text = segment.read_text("utf-8")
    for lacking in (text.replace("rules_heading: Standing rules\n", ""), text.replace("Standing rules: ", "Rules: ")):
        segment.write_text(lacking, "utf-8")
        told = call("prompts", "check", mine)
        assert told.exit_code == 0
        assert told.stdout.endswith("no problems\n")
        assert told.stderr.startswith("WARNING: ")
        assert "rules_heading" in told.stderr


def test_a_set_that_is_not_there_or_would_be_overwritten_is_one_line(mine: Path) -> None:
    """What is there stays as it is; a name does not steer the terminal."""
    before = {path.name: path.read_bytes() for path in mine.iterdir()}

    assert "exists and is left unchanged" in refusal("prompts", "copy", "brief", mine)
    assert "(Not a directory); name another folder" in refusal("prompts", "copy", "brief", mine / "merge.md" / "x")
    assert "available: brief, coding" in refusal("prompts", "check", "nix")
    assert "available: brief, coding" in refusal("prompts", "copy", "nix", mine.parent / "new")
    assert "\x1b" not in refusal("prompts", "check", "\x1b[31mnix")
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before


# --- cache ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A file with the summaries of a replayed session."""
    path = tmp_path / "kept.sqlite3"
    assert call("replay", recorded(tmp_path), *NARROW, "--config", f"cache={path}").exit_code == 0
    return path


def stats(path: Path) -> dict[str, Any]:
    """What `cache stats --json` prints."""
    told = call("cache", "stats", "--cache", path, "--json")
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    data: dict[str, Any] = json.loads(told.stdout)
    return data


def test_stats_tell_what_the_file_holds(filled: Path) -> None:
    """For readers too, with days."""
    data, told = stats(filled), call("cache", "stats", "--cache", filled).stdout

    assert data.keys() == {"path", "bytes", "entries", "oldest", "newest"}
    assert data["path"] == str(filled)
    assert data["entries"] > 0
    assert data["newest"] >= data["oldest"] > 0
    assert re.search(rf"^Entries +{data['entries']:,}  summaries", told, re.MULTILINE)
    assert re.search(r"^Oldest +20\d\d-\d\d-\d\d \d\d:\d\d  UTC", told, re.MULTILINE)


def test_clear_removes_all_once_it_is_confirmed(filled: Path) -> None:
    """No answer, and no for an answer, leave all there is; exit status 1."""
    held = stats(filled)["entries"]

    for answer in ("", "\n", "n\n"):
        told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input=answer)
        assert told.exit_code == 1
        assert stats(filled)["entries"] == held
    told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input="y\n")

    assert told.exit_code == 0, told.output
    assert f"Removed {held} entries." in told.stdout
    assert stats(filled)["entries"] == 0


@pytest.mark.parametrize("command", [["stats"], ["clear", "--yes"]])
def test_what_is_no_file_of_summaries_is_refused_by_name(tmp_path: Path, command: list[str]) -> None:
    """A folder, another file, a server's address without its password, memory, a bare word; an option."""
    (tmp_path / "notes.db").write_text("not a database, and long enough to be looked at" * 100)
    for name, program in (("new.db", 1668577395), ("other.db", 7)):
        with closing(sqlite3.connect(tmp_path / name)) as made:
            made.executescript(f"CREATE TABLE x (y); PRAGMA application_id = {program}; PRAGMA user_version = 9")

    for cache, says in (
        (tmp_path, f"{tmp_path}: it is a folder; name a file"),
        (tmp_path / "new.db", f"{tmp_path}/new.db: it is of version 9, and this program reads version 2; name another"),
        (tmp_path / "other.db", f"{tmp_path}/other.db: it is another program's database; name another file"),
        (tmp_path / "notes.db", f"{tmp_path}/notes.db: file is not a database; name another file"),
        (
            "redis://me:word@127.0.0.1:1/0?a=word",
            "cache: redis://127.0.0.1:1/0 is not a file, and only a file can be shown",
        ),
        ("memory", "cache: memory is not a file, and only a file can be shown or cleared; name one"),
        ("notes", "cache: 'notes' is not a file; write a path with a folder, as in ./name, or one that ends in .db"),
    ):
        told = refusal("cache", *command, "--cache", cache)
        assert told.startswith("Error: ")
        assert says in told
        assert "word" not in told
    assert call("cache", *command, "--cache", "--json").exit_code == 2


def test_a_file_without_permission_is_named_so(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SQLite says it where the system refuses; the superuser is never refused."""
    refused = sqlite3.OperationalError("unable to open database file")
    refused.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    monkeypatch.setattr(sqlite3, "connect", Mock(side_effect=refused))

    assert f"{filled}: unable to open database file; no permission to read" in refusal(
        "cache", "stats", "--cache", filled
    )
