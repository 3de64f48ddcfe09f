"""`prompts`: the sets there are, every problem of one, a copy to start from."""

from __future__ import annotations

import re

import pytest

from context_summarize.summaries.prompts import available_sets
from tests.support.cli import call, plain_terminal, refusal  # noqa: F401
from tests.support.paths import ROOT


@pytest.fixture
def mine(tmp_path):
    """A copy of a set."""
    told = call("prompts", "copy", "coding", tmp_path / "mine")
    assert told.exit_code == 0, told.output
    return tmp_path / "mine"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_list_names_every_set(monkeypatch, columns):
    """Name, version, words, and what it is for, within the terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))

    told = call("prompts", "list")

    assert told.exit_code == 0
    found = re.findall(r"^(\w+) +\S+ +\d+  \w+", told.stdout, re.MULTILINE)
    assert sorted(found) == sorted(available_sets())
    assert max(map(len, told.stdout.splitlines())) <= columns


@pytest.mark.parametrize("name", available_sets())
def test_a_set_of_the_package_has_no_problems(name):
    """Each one passes its own check."""
    told = call("prompts", "check", name)

    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.endswith("no problems\n")


def test_a_copy_has_the_three_files_and_no_problems(mine):
    """It can be used as it is."""
    assert sorted(path.name for path in mine.iterdir()) == ["frame.md", "merge.md", "segment.md"]
    assert call("prompts", "check", mine).exit_code == 0


def test_check_tells_every_problem_one_a_line(mine):
    """A missing file and an unknown variable are told together; the exit status is 1."""
    (mine / "merge.md").unlink()
    segment = mine / "segment.md"
    segment.write_text(segment.read_text("utf-8") + "\n$nonsense\n", "utf-8")

    told = call("prompts", "check", mine)

    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert any("merge.md" in line for line in lines)
    assert any("segment.md" in line and "$nonsense" in line for line in lines)
    assert told.stderr == f"FAILED: {len(lines)} problems\n"


def test_a_copy_overwrites_nothing(mine):
    """A folder that exists is left as it is."""
    (mine / "frame.md").write_text("mine", "utf-8")

    line = refusal("prompts", "copy", "brief", mine)

    assert "exists and is left unchanged" in line
    assert (mine / "frame.md").read_text("utf-8") == "mine"


def test_a_set_that_is_not_there_is_one_line(tmp_path):
    """The sets there are stand in it."""
    assert "available: brief, coding" in refusal("prompts", "check", "nix")
    assert "available: brief, coding" in refusal("prompts", "copy", "nix", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_s_name_does_not_steer_the_terminal(tmp_path):
    """Control characters of a path are blanks when it is shown."""
    told = call("prompts", "copy", "brief", tmp_path / "a\x1b[31m")

    assert told.exit_code == 0
    assert "\x1b" not in told.output
    assert "\x1b" not in call("prompts", "check", tmp_path / "a\x1b[31m").output


def test_show_prints_the_files_of_a_set():
    """All of them with their names, or one of them as it is."""
    told = call("prompts", "show", "default")
    one = call("prompts", "show", "default", "--file", "frame.md")

    assert (told.exit_code, one.exit_code) == (0, 0), told.output
    assert [name for name in ("segment.md", "merge.md", "frame.md") if f"{name}\n" in told.stdout.replace(" ", "")]
    assert one.stdout == (ROOT / "prompts" / "default" / "frame.md").read_text("utf-8").rstrip("\n") + "\n"


def test_show_of_no_set_or_a_damaged_one_is_one_line(tmp_path):
    assert "available: brief, coding" in refusal("prompts", "show", "nix")
    assert "cannot be read: No such file" in refusal("prompts", "show", tmp_path)
    (tmp_path / "segment.md").write_bytes(b"\xff")
    assert "segment.md is not UTF-8 (byte 1); save" in refusal("prompts", "show", tmp_path)


def test_show_does_not_steer_the_terminal(tmp_path):
    for name in ("segment.md", "merge.md", "frame.md"):
        (tmp_path / name).write_text("\x1b[31m[bold]x[/]")

    told = call("prompts", "show", tmp_path)

    assert "\x1b" not in told.output
    assert told.stdout.count("[bold]x[/]") == 3
