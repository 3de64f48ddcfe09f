"""`sessions`, sessions by their ids, and `report`."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from context_summarize.cli.main import main
from context_summarize.cli.options import SessionName
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.inspection_page import render_inspection
from context_summarize.testing import assistant, tool_session, user
from tests.support.cli import EXAMPLE, NARROW, call, plain_terminal, recorded, refusal, store  # noqa: F401

ONE, TWO = "8f21c0aa-1111-4222-8333-abcdefabcdef", "8f21c0ab-1111-4222-8333-abcdefabcdef_zen-architect"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A user's Amplifier folder with two sessions."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "amplifier"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    sessions = tmp_path / "amplifier" / "projects" / "-work" / "sessions"
    for at, name in enumerate((ONE, TWO)):
        (sessions / name).mkdir(parents=True)
        path = store(sessions / name / "transcript.jsonl", tool_session(40 + at, size=800))
        os.utime(path, (1_800_000_000 + at, 1_800_000_000 + at))
    return sessions


def test_stored_sessions_are_listed_newest_first_with_their_first_words():
    told = call("sessions")

    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert re.match(r"8f21c0ab  20\d\d-\d\d-\d\d \d\d:\d\d +164  Please look up", lines[2])
    assert re.match(r"8f21c0aa  20\d\d-\d\d-\d\d \d\d:\d\d +160  Please look up", lines[3])
    assert lines[-1].strip() == "Look at one with: context-summarize report 8f21c0ab"


def test_a_wide_terminal_shows_whole_ids_and_json_shows_all_there_is(monkeypatch, folder):
    monkeypatch.setenv("COLUMNS", "140")
    assert TWO in call("sessions").stdout

    data = json.loads(call("sessions", "--json", "--limit", 1).stdout)

    assert data["stored"] == 2
    [session] = data["sessions"]
    assert (session["id"], session["program"], session["messages"]) == (TWO, "amplifier", 164)
    assert session["path"] == str(folder / TWO / "transcript.jsonl")
    assert "1 older session" in call("sessions", "--limit", 1).stdout


def test_no_session_at_all_is_said_and_no_error():
    told = call("sessions", "--of", "claude-code")

    assert told.exit_code == 0
    assert "No sessions in " in told.stdout
    assert "--of amplifier" in " ".join(told.stdout.split())


def test_a_session_does_not_steer_the_terminal(folder):
    """Neither its id nor its words."""
    (folder / "evil\x1b[31m").mkdir()
    store(folder / "evil\x1b[31m" / "transcript.jsonl", [user("\x1b]0;title\x07 [bold]x[/]"), assistant("y")])

    told = call("sessions")

    assert told.exit_code == 0, told.output
    assert not {"\x1b", "\x07"} & set(told.output)
    assert "[bold]x[/]" in told.stdout


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_a_session_is_named_by_the_beginning_of_its_id(command):
    data = json.loads(call(command, "8f21c0aa", *NARROW, "--json").stdout)

    assert data["file"] == ONE
    assert "2 sessions begin with '8f'" in refusal(command, "8f")
    assert "nix is neither a file nor a stored session; `context-summarize sessions` lists" in refusal(command, "nix")


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_a_recording_may_come_through_a_pipe(command, tmp_path):
    """As any of the forms that files have."""
    rows = json.dumps({"messages": tool_session(3)})

    told = CliRunner().invoke(main, [command, "-", "--json"], input=io.BytesIO(rows.encode()))

    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["file"] == "standard input"
    empty = CliRunner().invoke(main, [command, "-"], input=b"")
    assert (empty.exit_code, empty.stderr.count("\n")) == (2, 1)
    assert "standard input holds no messages" in empty.stderr


def test_a_shell_completes_files_and_ids():
    items = SessionName().shell_complete(None, None, "8f21c0aa")  # type: ignore[arg-type]

    assert [(item.type, item.value) for item in items] == [("file", "8f21c0aa"), ("plain", ONE)]


# --- report -----------------------------------------------------------------------------------------------------------


def test_report_writes_the_page_and_says_so_in_one_paragraph(tmp_path):
    page = tmp_path / "mine.html"

    told = call("report", "8f21c0aa", *NARROW, "--output", page)

    assert (told.exit_code, told.stderr) == (0, ""), told.output
    assert re.search(r"the report of 8f21\S+ \(80 requests, \d+ compactions, \d+ calls", " ".join(told.stdout.split()))
    assert "All checks passed." in " ".join(told.stdout.split())
    assert page.read_text("utf-8").lower().startswith("<!doctype html>")


def test_report_is_refused_before_the_replay_and_ends_as_replay_does(tmp_path):
    assert "there is no folder" in refusal("report", "nix", "-o", tmp_path / "no" / "a.html")
    rows = [{"role": "system", "content": "rule " * 900}, user("a"), assistant("b")]
    path = store(tmp_path / "a.jsonl", rows)

    told = call("report", path, "--window", 1_000, "--max-output", 100, "-o", tmp_path / "a.html")

    assert told.exit_code == 1
    assert "A check failed." in " ".join(told.stdout.split())
    assert told.stderr.splitlines()[-1].startswith("FAILED: Within budget")


# --- the page of inspect ------------------------------------------------------------------------------------------


def test_inspect_writes_a_page_that_runs_nothing(tmp_path):
    page = tmp_path / "i.html"

    told = call("inspect", EXAMPLE, "--html", page)

    assert told.exit_code == 0, told.output
    text = page.read_text("utf-8")
    assert "default-src 'none'; style-src 'sha256-" in text
    assert "<script" not in text
    assert text.count("<details>") > 10
    assert "1,335 rows, 120,073 tokens in total" in text


def test_hostile_text_is_inert_on_that_page_and_secrets_are_taken_out():
    """In a name and in a summary, the places where foreign text stands."""
    evil = '</details><script>alert(1)</script><img src=x onerror="alert(1)">\x1b\ud800'
    key = "sk-proj-" + "Ab1" * 16
    found = asyncio.run(inspect_rows(tool_session(40, size=800), window=6_000, max_output=1_000))
    node = found.tree[0]
    assert node.summary is not None
    summary = replace(node.summary, text=f"{evil} key {key}")

    text = render_inspection(replace(found, tree=(replace(node, summary=summary),)), "<b>$x${y}")

    text.encode("utf-8")
    assert not re.search("<(script|img|b>)|\x1b", text)
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;$x${y}" in text
    assert key not in text
    assert text.count("<details>") == text.count("</details>") > 0


def test_a_page_that_cannot_be_written_is_one_line(tmp_path):
    assert "there is no folder" in refusal("inspect", "nix", "--html", tmp_path / "no" / "a.html")
    assert "cannot be written: File name too long" in refusal("inspect", ONE, "--html", tmp_path / ("x" * 300))


@pytest.mark.parametrize("flag", [("report", "-o"), ("replay", "--html"), ("inspect", "--html")])
@pytest.mark.parametrize("linked", [False, True])
def test_a_session_is_never_replaced_by_a_page(tmp_path, flag, linked):
    """Also where a link leads to it; a page of before, and an empty file, are replaced."""
    path = store(tmp_path / "mine.jsonl", tool_session(6, size=200))
    kept, name = path.read_bytes(), path
    if linked:
        name = tmp_path / "page.html"
        name.symlink_to(path)

    told = call(flag[0], path, *NARROW, flag[1], name)

    assert told.exit_code == 2
    assert "is not replaced: it is no HTML page" in " ".join(told.stderr.split())
    assert path.read_bytes() == kept
    page = tmp_path / "report.html"
    for before in ("", "<!DOCTYPE html><p>old"):
        page.write_text(before, "utf-8")
        call(flag[0], path, *NARROW, flag[1], page)
        assert len(page.read_text("utf-8")) > 1_000
