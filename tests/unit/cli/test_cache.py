"""`cache`: what a file of summaries holds, and its clearing, asked for or not."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3

import pytest
from click.testing import CliRunner

from context_summarize.cli import cache as cli_cache
from context_summarize.cli.main import main
from context_summarize.core.nodes import CompactionRecord, Node, Summary
from context_summarize.stores.sqlite import SqliteStore, default_path
from context_summarize.testing import tool_session
from tests.support.cli import NARROW, call, plain_terminal, recorded, refusal, store  # noqa: F401


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
    assert data.keys() == {"path", "bytes", "summaries", "records", "oldest", "newest", "tokens", "source_tokens"}
    assert data["path"] == str(filled)
    assert data["summaries"] > 0
    assert data["source_tokens"] > data["tokens"] > 0
    assert data["newest"] >= data["oldest"] > 0
    assert "does not exist" not in told.stdout
    assert re.search(rf"^Summaries +{data['summaries']}  {data['tokens']:,} tokens", told.stdout, re.MULTILINE)
    assert re.search(r"^Oldest +20\d\d-\d\d-\d\d \d\d:\d\d  UTC", told.stdout, re.MULTILINE)


def test_no_file_is_an_empty_store_and_none_is_made(tmp_path):
    """The default is in the user's Amplifier folder, which is not made either."""
    assert stats(tmp_path / "none.sqlite3")["summaries"] == 0
    told = call("cache", "stats")

    assert told.exit_code == 0
    assert str(default_path()) in told.stdout.replace("\n", "")
    assert "The file does not exist yet" in told.stdout
    assert "Oldest" not in told.stdout
    assert not (tmp_path / "none.sqlite3").exists()
    assert not default_path().parent.exists()


@pytest.mark.parametrize("command", [["stats"], ["clear", "--yes"]])
def test_what_is_no_store_is_one_line(tmp_path, command):
    """A folder, a server's address and memory are no files of summaries."""
    assert refusal("cache", *command, "--cache", tmp_path).startswith("Error: ")
    assert "is not a file" in refusal("cache", *command, "--cache", "redis://127.0.0.1:1/0")
    assert "is not a file" in refusal("cache", *command, "--cache", "memory")


# --- clear ----------------------------------------------------------------------------------------------------------


def test_clear_with_yes_empties_the_file(filled):
    """Every entry goes, and is counted."""
    before = stats(filled)

    told = call("cache", "clear", "--yes", "--cache", filled)

    assert told.exit_code == 0, told.output
    assert f"Removed {before['summaries'] + before['records']} entries" in told.stdout
    assert stats(filled)["summaries"] == stats(filled)["records"] == 0


def test_clear_asks_at_a_terminal_and_takes_yes(filled, terminal):
    """The question names how much goes, and stands on stderr: stdout is the result's."""
    held = stats(filled)["summaries"]

    told = CliRunner().invoke(main, ["cache", "clear", "--json", "--cache", str(filled)], input="y\n")

    assert told.exit_code == 0, told.output
    assert f"Remove {held} summaries and " in told.stderr
    assert json.loads(told.stdout) == {"path": str(filled), "removed": json.loads(told.stdout)["removed"]}
    assert json.loads(told.stdout)["removed"] >= held
    assert stats(filled)["summaries"] == 0


def test_clear_takes_no_for_an_answer(filled, terminal):
    """Enter alone is no; the exit status tells a script."""
    told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input="\n")

    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr.endswith("Nothing was removed.\n")
    assert stats(filled)["summaries"] > 0


def test_clear_that_is_interrupted_removes_nothing(filled, terminal):
    """Input that ends is taken like Ctrl-C."""
    told = CliRunner().invoke(main, ["cache", "clear", "--cache", str(filled)], input="")

    assert told.exit_code == 130
    assert told.stderr.endswith("Interrupted.\n")
    assert stats(filled)["summaries"] > 0


def test_clear_without_a_terminal_needs_yes(filled):
    """A script that forgot it is told, and loses nothing."""
    line = refusal("cache", "clear", "--cache", filled)

    assert line == "Error: there is no terminal to ask at; give --yes to remove all stored summaries"
    assert stats(filled)["summaries"] > 0


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

    assert "Remove 1 summary and 0 records" in told.stderr
    assert "Removed 1 entry" in told.stdout


# --- list -----------------------------------------------------------------------------------------------------------


def listed(path) -> dict:
    told = call("cache", "list", "--cache", path, "--json")
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    return dict(json.loads(told.stdout))


def test_list_tells_each_session_by_its_first_words(filled, tmp_path):
    """A second session is a line of its own, and a replay of the first again is none."""
    rows = tool_session(40, size=800, start=500)
    other = store(tmp_path / "other.jsonl", rows)
    assert call("replay", other, *NARROW, "--config", f"cache={filled}").exit_code == 0

    told, data = call("cache", "list", "--cache", filled), listed(filled)

    assert told.exit_code == 0, told.output
    assert len(data["sessions"]) == 2
    first, second = data["sessions"]
    assert first["newest"] >= second["newest"]
    assert first["bytes"] > 0 < first["summaries"]
    held = stats(filled)
    assert first["records"] + second["records"] == held["records"]
    assert first["summaries"] + second["summaries"] + data["others"] >= held["summaries"]
    assert "ORD00500" in first["first_words"] + told.stdout
    line = rf"^{first['key'][:8]}  20\d\d-\d\d-\d\d \d\d:\d\d +{first['summaries']} +[\d.]+ kB "
    assert re.search(line, told.stdout, re.MULTILINE)
    assert max(map(len, told.stdout.splitlines())) <= 80
    assert "1 older session is not listed" in call("cache", "list", "--cache", filled, "--limit", 1).stdout


def test_list_of_no_file_is_empty_and_makes_none(tmp_path):
    told = call("cache", "list", "--cache", tmp_path / "none.sqlite3")

    assert told.exit_code == 0
    assert "The file does not exist yet" in told.stdout
    assert listed(tmp_path / "none.sqlite3")["sessions"] == []
    assert not (tmp_path / "none.sqlite3").exists()


def test_list_passes_over_what_it_cannot_read_and_changes_nothing(filled):
    """Damaged entries, entries of another release, summaries that are gone: they are counted."""
    before = len(listed(filled)["sessions"])
    with sqlite3.connect(filled) as connection:
        columns = "kind, key, used, size, created, tokens, source_tokens, entry"
        put = f"INSERT INTO entries ({columns}) VALUES (?, ?, 0, 9, 1, 0, 0, ?)"
        connection.execute(put, ("record", "a" * 64, "no json"))
        connection.execute(put, ("record", "b" * 64, '{"format": 99}'))
        connection.execute("DELETE FROM entries WHERE kind = 'summary'")
        uses = connection.execute("SELECT used FROM entries ORDER BY key").fetchall()
    connection.close()

    told, data = call("cache", "list", "--cache", filled), listed(filled)

    assert told.exit_code == 0, told.output
    assert len(data["sessions"]) == before
    assert (data["others"], data["other_bytes"]) == (2, 18)
    assert "(no longer" in told.stdout
    with sqlite3.connect(filled) as connection:
        assert connection.execute("SELECT used FROM entries ORDER BY key").fetchall() == uses
    connection.close()


def test_list_does_not_steer_the_terminal(tmp_path):
    """A summary's text comes from a model."""
    path = tmp_path / "evil.sqlite3"
    node = Node("k" * 64, 0, 0, 0, 1, 10)

    async def fill() -> None:
        kept = SqliteStore(path)
        await kept.put(Summary("k" * 64, 0, "\x1b]0;title\x07 [bold]x[/]", (), 1, 10))
        await kept.put_record(CompactionRecord("h" * 64, 1, 1, 64, 16, (node,)))
        await kept.close()

    asyncio.run(fill())
    told = call("cache", "list", "--cache", path)

    assert told.exit_code == 0, told.output
    assert not {"\x1b", "\x07"} & set(told.output)
    assert "[bold]x" in told.stdout
