"""`replay` at the command line: what it prints, for machines and readers, which provider it asks, and how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.cli import EXAMPLE, NARROW, call, install, plain_terminal, recorded, refusal, store  # noqa: F401
from tests.support.paths import ROOT
from tests.support.rows import assistant, user

KEYS = {
    *("file", "provider", "window", "budget", "messages", "history_tokens", "requests", "largest_view"),
    *("stable_share", "provider_calls", "failed_summaries", "provider_input_tokens"),
    *("provider_output_tokens", "seconds", "ok", "compactions", "checks"),
}
PROVIDER = """
from context_summarize.testing import ScriptedProvider

async def mount(coordinator, config):
    provider = ScriptedProvider(context_window=7_000, max_output_tokens=500{options})
    await coordinator.mount("providers", provider, name="fake")

    async def cleanup():
        open("closed", "x").close()

    return cleanup
"""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A recording that needs compactions in a window of 6,000 tokens."""
    return recorded(tmp_path)


def run(*arguments: object) -> Result:
    """`replay` with these arguments."""
    return call("replay", *arguments)


def line(told: Result, label: str) -> str:
    """The line of a figure or a check, with single blanks."""
    [found] = [" ".join(text.split()) for text in told.stdout.splitlines() if text.startswith(f"{label}  ")]
    return found.removeprefix(label).strip()


# --- what it prints ---------------------------------------------------------------------------------------------------


def test_the_example_passes_all_checks_with_many_compactions() -> None:
    """As `make demo` shows it: within 80 columns, with nothing beside the result."""
    told = run(EXAMPLE)

    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    row = r" *[\d,]+ +([\d,]+) → ([\d,]+) +\d+ +\d+ +\d+ +\d+ +[\d,]+ ms +(threshold|must fit) *"
    assert len([text for text in lines if re.fullmatch(row, text)]) >= 5
    assert len(re.findall(r"^\S.*  ok  ", told.stdout, re.MULTILINE)) == 5
    assert line(told, "Messages").startswith("1,335 120,073 tokens")
    assert line(told, "Pairs intact") == "ok 642 views each call is followed by its results"
    assert "a window of 40,000 tokens, 35,000 of them for a request" in " ".join(told.stdout.split())
    assert "Provider: offline. It is not a model" in told.stdout


def test_a_narrow_terminal_gets_lines_instead_of_tables(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut, and no word is broken."""
    monkeypatch.setenv("COLUMNS", "40")

    told = " ".join(run(session, *NARROW).stdout.split())

    assert "…" not in told
    assert re.search(r"- Message \d+, Before → after [\d,]+ → [\d,]+, Segments \d, .*?, Why threshold ", told)
    assert re.search(r"- Requests: \d+ in [\d.]+ s - ", told)
    assert re.search(r"- Pairs intact: ok \d+ views each call is followed by its results -", told)


def test_json_is_one_object_and_the_rest_is_told_beside_it(session: Path) -> None:
    """The help names its keys; stderr says what is left out, as of a file that is still being written."""
    page = session.parent / "report.html"
    with session.open("a") as file:
        file.write('{"role": "us')

    told = run(session, *NARROW, "--json", "--html", page)

    assert told.exit_code == 0
    note, report = told.stderr.splitlines()
    assert note == "note: left out of session.jsonl: 1 not JSON (first: line 161)"
    assert report == f"The report is in {page}; a browser opens it."
    assert page.read_text("utf-8").startswith("<!doctype html>")
    data = json.loads(told.stdout)
    assert data.keys() == KEYS <= set(re.findall(r"\w+", run("--help").stdout))
    assert (data["file"], data["messages"], data["window"], data["budget"]) == ("session.jsonl", 160, 6_000, 4_000)
    assert data["compactions"][0]["before_tokens"] > data["compactions"][0]["after_tokens"] > 0
    assert {check["name"] for check in data["checks"] if check["ok"]} >= {"Pairs intact", "Within budget"}


def test_what_a_recording_holds_does_not_steer_the_terminal(tmp_path: Path) -> None:
    """In text it is left out; in JSON it is escaped, and the same again when it is read."""
    text = "[bold]x[/] \x1b]0;title\x07 \x7f \x9b31m é \ud800"
    path = store(tmp_path / "a\x1b[31m.jsonl", [user(text), assistant("y")])

    told, data = run(path, "--show-view"), run(path, "--show-view", "--json").stdout

    assert told.exit_code == 0, told.output
    assert "[bold]x[/]" in told.stdout
    assert all(char.isprintable() or char == "\n" for char in told.output)
    assert all(char == "\n" or " " <= char <= "~" for char in data)
    assert json.loads(data)["last_view"][0]["content"] == text


@pytest.mark.parametrize("options", [[], ["--show-view"], ["--json"]])
def test_a_reader_that_leaves_early_is_no_error(session: Path, options: list[str]) -> None:
    """As `head` does: exit status 0, and not a word."""
    with start("replay", session, *NARROW, *options) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, told = process.communicate()
    assert (process.returncode, told) == (0, b"")


# --- settings and options ---------------------------------------------------------------------------------------------


def test_settings_reach_the_module_as_json_text_or_none(session: Path) -> None:
    """One a time, as often as they are needed."""
    pairs = ["auto_compact=false", "max_tokens=3000", "prefetch=false", 'redact=["a=b"]']

    told = run(session, *NARROW, *(word for pair in pairs for word in ("--config", pair)))

    assert told.exit_code == 0, told.output
    assert "3,000 of them for a request" in told.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--config", "keep_recnt=3"], "unknown setting 'keep_recnt'; did you mean 'keep_recent'?"),
        (["--config", "keep_recent"], "--config 'keep_recent' has no value; expected KEY=VALUE"),
        (
            ["--config", "keep_recent=4", "--config", "keep_recent=5"],
            "--config gives keep_recent twice; keep one of them",
        ),
        (["--config", 'persistence={"path": "a/file"}'], "persistence cannot be set here: a replay writes no history"),
        (["--window", "1e99999999"], "'1e99999999' is not a valid integer range"),
        (["--html", "--json"], "a name is missing before '--json'; a file of that name is ./--json"),
        (["--html", "no/report.html"], "no/report.html cannot be written: there is no folder"),
        (["--provider", "provider-nix"], "no provider module 'provider-nix'"),
    ],
)
def test_options_that_cannot_be_used_are_told_with_a_remedy(
    session: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    """Exit status 2, nothing on stdout, no traceback, and no file of an option's name."""
    monkeypatch.chdir(session.parent)

    told = run(session, *options)

    assert (told.exit_code, told.stdout) == (2, "")
    assert isinstance(told.exception, SystemExit)
    assert says in " ".join(told.stderr.split())
    assert [path.name for path in session.parent.iterdir()] == ["session.jsonl"]


# --- providers --------------------------------------------------------------------------------------------------------


def test_a_provider_that_is_down_costs_summaries_and_no_check(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of warning is one line, and the last one says what it means; exit status 3."""
    monkeypatch.chdir(tmp_path)
    source = PROVIDER.format(options=", then=ConnectionError('refused')")
    told = run(session, "--provider", install(tmp_path, monkeypatch, "down", source), "--json")

    assert told.exit_code == 3, told.output
    data = json.loads(told.stdout)
    assert data["ok"]
    assert data["failed_summaries"] > 0
    assert sum(one["fallbacks"] for one in data["compactions"]) > 0
    *before, last = told.stderr.splitlines()
    assert 1 <= len(before) <= 6
    assert all(text.startswith(("warning: ", "error: ")) for text in before)
    assert last.startswith("NO SUMMARIES: fake was called ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "a window of 7,000 tokens, 5,500 of them for a request"),
        (["--window", 6_000, "--max-output", 1_500], "requests of at most 3,500 tokens"),
    ],
)
def test_an_installed_provider_is_asked_and_its_window_holds_unless_another_is_given(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[object], says: str
) -> None:
    """It is named by its entry point, and cleaned up at the end."""
    monkeypatch.chdir(tmp_path)
    name = install(tmp_path, monkeypatch, "windowed", PROVIDER.format(options=""))
    told = run(session, "--provider", name, "--show-view", *options)

    assert told.exit_code == 0, told.output
    assert says in " ".join(told.stdout.split())
    assert "Goal: the user asked for something, and it was done." in told.stdout
    assert "Provider: fake." in told.stdout
    assert not line(told, "Provider calls").startswith("0 ")
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("pass", "fake mounted no provider; is its key set"),
        ("1 / 0", "fake cannot be mounted: ZeroDivisionError"),
        ("import no_such_module", "provider-fake cannot be mounted: ModuleNotFoundError"),
    ],
)
def test_a_provider_that_does_not_mount_says_why(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, says: str
) -> None:
    source = f"async def mount(coordinator, config): {does}"
    assert says in refusal("replay", session, "--provider", install(tmp_path, monkeypatch, "fake", source))


# --- how it ends ------------------------------------------------------------------------------------------------------


def test_a_check_that_fails_is_named_and_ends_with_1(tmp_path: Path) -> None:
    """In the table, and once more as the last line of stderr."""
    path = store(tmp_path / "a.jsonl", [{"role": "system", "content": "rule " * 900}, user("a"), assistant("b")])

    told = run(path, "--window", 1_000, "--max-output", 100)

    assert told.exit_code == 1
    assert line(told, "Within budget") == "FAILED 1 of 1 view no request is too large"
    assert line(told, "Pairs intact").startswith("ok ")
    last = told.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"FAILED: Within budget: the request before message 2 holds [\d,]+ tokens, the budget is 500", last
    )


def start(*command: object, stderr: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """A command in a process of its own, as a shell starts it."""
    # A test runner may have been started with SIGINT ignored, which children inherit.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from context_summarize.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, command)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def test_ctrl_c_while_a_provider_is_asked_ends_with_130_and_one_line(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider sends the signal itself when it is asked, and hangs."""
    source = """
import asyncio, os, signal
from context_summarize.testing import ScriptedProvider

class Hanging(ScriptedProvider):
    async def complete(self, request, **kwargs):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

async def mount(coordinator, config):
    await coordinator.mount("providers", Hanging(context_window=6_000, max_output_tokens=500), name="hanging")
"""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with start("replay", session, "--provider", install(tmp_path, monkeypatch, "hanging", source)) as process:
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"Interrupted.\n")


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_a_terminal_shows_what_is_done_before_all_is_read(command: str) -> None:
    """Here standard input has not even begun."""
    ours, theirs = os.openpty()
    with start(command, "-", stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while b"Reading" not in shown:
            shown += os.read(ours, 1_000)
        assert process.poll() is None
        process.communicate(b"", timeout=60)
    os.close(ours)
    assert process.returncode == 2
