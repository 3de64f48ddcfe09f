"""`cache`: what a file of summaries holds, and its clearing, asked for or not."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from click.testing import CliRunner

from context_summarize.cli import cache as cli_cache
from context_summarize.cli.main import main
from context_summarize.core.nodes import Summary
from context_summarize.stores import SqliteStore, open_file
from tests.support.cli import NARROW, call, plain_terminal, recorded, refusal  # noqa: F401


@pytest.fixture
def filled(tmp_path):
    """A file with the summaries of a replayed session."""
    path = tmp_path / "kept.sqlite3"
    assert call("replay", recorded(tmp_path), *NARROW, "--config", f"cache={path}").exit_code == 0
    return path


@pytest.fixture
def terminal(monkeypatch):
    """Commands find a terminal at their standard input."""
    monkeypatch.setattr(cli_cache, "_at_terminal", lambda: True)


def stats(path):
    told = call("cache", "stats", "--cache", path, "--json")
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    return json.loads(told.stdout)


# --- stats ----------------------------------------------------------------------------------------------------------


def test_stats_tell_what_the_file_holds(filled):
    """Counts are those of the store, and the day is today's form."""
    told = call("cache", "stats", "--cache", filled)
    data = stats(filled)

    assert told.exit_code == 0, told.output
    assert data.keys() == {"path", "bytes", "entries", "oldest", "newest"}
    assert data["path"] == str(filled)
    assert data["entries"] > 0
    assert data["newest"] >= data["oldest"] > 0
    assert "does not exist" not in told.stdout
    assert re.search(rf"^Entries +{data['entries']}  summaries, and records", told.stdout, re.MULTILINE)
    assert re.search(r"^Oldest +20\d\d-\d\d-\d\d \d\d:\d\d  UTC", told.stdout, re.MULTILINE)


def test_no_file_is_an_empty_store_and_none_is_made(tmp_path):
    """The default is in the user's Amplifier folder, which is not made either."""
    assert stats(tmp_path / "none.sqlite3")["entries"] == 0
    told = call("cache", "stats")

    assert told.exit_code == 0
    assert str(open_file(None).path) in told.stdout.replace("\n", "")
    assert "The file does not exist yet" in told.stdout
    assert "Oldest" not in told.stdout
    assert not (tmp_path / "none.sqlite3").exists()
    assert not open_file(None).path.parent.exists()


@pytest.mark.parametrize("command", [["stats"], ["clear", "--yes"]])
def test_what_is_no_store_is_one_line(tmp_path, command):
    """A folder, a server's address and memory are no files of summaries."""
    assert refusal("cache", *command, "--cache", tmp_path).startswith("Error: ")
    assert "is no file" in refusal("cache", *command, "--cache", "redis://127.0.0.1:1/0")
    assert "is no file" in refusal("cache", *command, "--cache", "memory")


# --- clear ----------------------------------------------------------------------------------------------------------


def test_clear_with_yes_empties_the_file(filled):
    """Every entry goes, and is counted."""
    before = stats(filled)

    told = call("cache", "clear", "--yes", "--cache", filled)

    assert told.exit_code == 0, told.output
    assert f"Removed {before['entries']} entries" in told.stdout
    assert stats(filled)["entries"] == 0


def test_clear_asks_at_a_terminal_and_takes_yes(filled, terminal):
    """The question names how much goes, and stands on stderr: stdout is the result's."""
    held = stats(filled)["entries"]

    told = CliRunner().invoke(main, ["cache", "clear", "--json", "--cache", str(filled)], input="y\n")

    assert told.exit_code == 0, told.output
    assert f"Remove {held} entries (" in told.stderr
    assert json.loads(told.stdout) == {"path": str(filled), "removed": json.loads(told.stdout)["removed"]}
    assert json.loads(told.stdout)["removed"] == held
    assert stats(filled)["entries"] == 0


def test_clear_takes_no_for_an_answer(filled, terminal):
    """Enter alone is no; the exit status tells a script."""
    told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input="\n")

    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr.endswith("Nothing was removed.\n")
    assert stats(filled)["entries"] > 0


def test_clear_that_is_interrupted_removes_nothing(filled, terminal):
    """Input that ends is taken like Ctrl-C."""
    told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input="")

    assert told.exit_code == 130
    assert told.stderr.endswith("Interrupted.\n")
    assert stats(filled)["entries"] > 0


def test_clear_without_a_terminal_needs_yes(filled):
    """A script that forgot it is told, and loses nothing."""
    line = refusal("cache", "clear", "--cache", filled)

    assert line == "Error: there is no terminal to ask at; give --yes to remove all stored summaries"
    assert stats(filled)["entries"] > 0


def test_clear_of_no_file_removes_nothing_and_makes_none(tmp_path):
    """One entry is one entry, none are entries."""
    told = call("cache", "clear", "--yes", "--cache", tmp_path / "none.sqlite3")

    assert told.exit_code == 0
    assert "Removed 0 entries" in told.stdout
    assert not (tmp_path / "none.sqlite3").exists()


def test_a_single_summary_is_named_as_one(tmp_path, terminal):
    """Counts agree with their nouns."""
    store = SqliteStore(tmp_path / "one.sqlite3")

    async def fill() -> None:
        await store.put(Summary("k" * 64, 0, "text", (), 1, 10))
        await store.close()

    asyncio.run(fill())
    told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(store.path)], input="y\n")

    assert "Remove 1 entry (" in told.stderr
    assert "Removed 1 entry" in told.stdout
