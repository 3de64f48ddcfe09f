"""`replay` at the command line: what it prints, for machines and readers, which provider it asks, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import tenacity
from click.testing import Result

from context_summarize.cli import main
from tests.support.chat_server import serving
from tests.support.cli import NARROW, call, install, plain_terminal, recorded, refusal, store  # noqa: F401
from tests.support.rows import assistant, result, user
from tests.support.rows import call as asks

YES = {"replay": [], "exam": ["--yes"]}
PROVIDER = """
import asyncio, os, signal
from amplifier_core.llm_errors import RateLimitError
from context_summarize.testing import ScriptedProvider

async def interrupted(request):
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()

async def mount(coordinator, config):
    with open("asked", "w") as file:
        file.write(str(config))
    provider = ScriptedProvider(context_window=7_000, max_output_tokens=500, {options})
    await coordinator.mount("providers", provider, name="fake")

    async def cleanup():
        open("closed", "x").close()

    return cleanup
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording that needs compactions in a window of 6,000 tokens, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return recorded(tmp_path)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    return store(tmp_path / "short.jsonl", [user("a"), assistant("b")])


def run(*arguments: object) -> Result:
    return call("replay", *arguments)


def words(told: Result) -> str:
    """What was printed, without ends of lines."""
    return " ".join(told.stdout.split())


def line(told: Result, label: str) -> str:
    """The line of a figure or a check, with single blanks."""
    [found] = [" ".join(text.split()) for text in told.stdout.splitlines() if text.startswith(f"{label}  ")]
    return found.removeprefix(label).strip()


def test_a_reader_gets_tables_within_80_columns(session: Path) -> None:
    told = run(session, *NARROW)

    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    row = r" *[\d,]+ +([\d,]+) → ([\d,]+) +\d+ +\d+ +\d+ +[\d,]+ ms +(threshold|must fit) *"
    assert len([text for text in lines if re.fullmatch(row, text)]) >= 5
    assert len(re.findall(r"^\S.*  ok  ", told.stdout, re.MULTILINE)) == 4
    assert re.match(r"160 1\d,\d{3} tokens", line(told, "Messages"))
    assert line(told, "Pairs intact") == "ok each call is followed by its results"
    assert "requests of at most 4,000." in words(told)
    assert "Provider: offline. It is not a model" in told.stdout
    assert "…" not in told.stdout


def test_programs_get_one_object_with_what_readers_see(session: Path) -> None:
    told, shown = run(session, *NARROW, "--json", "--show-view"), run(session, *NARROW)
    data = json.loads(told.stdout)
    assert (told.exit_code, data["file"], data["problem"]) == (0, "session.jsonl", None)
    assert line(shown, "Largest request").startswith(f"{data['largest_request']:,} ")
    assert line(shown, "Dollars").startswith(f"{data['dollars']:.2f} ")
    assert f"{data['compactions'][-1]['tokens']:,} " in shown.stdout
    assert [check["ok"] for check in data["checks"]] == [True] * 4
    assert data["statistics"]["compactions"] == len(data["compactions"])
    assert data["last_view"][-1]["role"]


def test_the_page_is_written_and_what_is_left_out_is_told_beside_the_tables(session: Path) -> None:
    """As of a file that is still being written."""
    page = session.parent / "report.html"
    with session.open("a") as file:
        file.write('{"role": "us')

    told = run(session, *NARROW, "--html", page)

    assert told.exit_code == 0
    note, report = told.stderr.splitlines()
    assert note == "note: left out of session.jsonl: 1 entry not in JSON (first: line 161)"
    assert report == f"The report is in {page}; a browser opens it."
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert ", 3 messages shortened, waited 0 ms." in page.read_text("utf-8")
    [[sent, whole]] = re.findall(r"Dollars ([\d.]+) sending the whole history costs ([\d.]+)", words(told))
    assert float(sent) > 0 < float(whole)


def test_what_a_recording_holds_does_not_steer_the_terminal(tmp_path: Path) -> None:
    text = "[bold]x[/] \x1b]0;title\x07 \x7f \x9b31m é \ud800"
    path = store(tmp_path / "a\x1b[31m.jsonl", [user(text), assistant("y")])

    told = run(path, "--show-view")

    assert told.exit_code == 0, told.output
    assert "[bold]x[/]" in told.stdout
    assert "requests of at most 35,000." in words(told)
    assert all(char.isprintable() or char == "\n" for char in told.output)


@pytest.mark.parametrize("options", [[], ["--show-view"]])
def test_a_reader_that_leaves_early_gets_no_traceback(
    short: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """As `head` does: not a word, also of what is written at the end."""
    ours, theirs = os.pipe()
    os.close(ours)
    with suppress(OSError), os.fdopen(theirs, "w") as stdout, monkeypatch.context() as patch:  # it is closed full
        patch.setattr(sys, "stdout", stdout)
        with suppress(SystemExit):
            main(["replay", str(short), *options])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("options", [["replay"], ["inspect"], ["--help"]])
def test_output_that_cannot_be_written_is_one_line_and_exit_status_1(
    short: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], options: list[str]
) -> None:
    with suppress(OSError), Path("/dev/full").open("w") as stdout, monkeypatch.context() as patch:  # it is closed full
        patch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit) as ended:
            main([*options, str(short)])
    assert ended.value.code == 1
    assert re.fullmatch("Error: No space left on device\n", capfd.readouterr().err)


def test_a_compaction_that_only_shortens_rows_says_so(tmp_path: Path) -> None:
    rows = [user("Read it."), asks("1"), result("1", "word " * 9_000), assistant("Done.")]
    told = run(store(tmp_path / "a.jsonl", rows), *NARROW)

    [cells] = re.findall(r"^ *4 +[\d,]+ → [\d,]+(.*)", told.stdout, re.MULTILINE)
    assert cells.split() == ["0", "0", "1", "0", "ms", "must", "fit"]
    assert "Shorter: messages of which only the beginning and the end are left." in words(told)


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_a_terminal_shows_what_is_done_before_all_is_read(
    command: str, monkeypatch: pytest.MonkeyPatch, no_hang: None
) -> None:
    """Standard input ends once it is shown."""
    ours, theirs = os.openpty()
    shown = b""

    def read() -> bytes:
        nonlocal shown
        while b"Reading" not in shown:
            shown += os.read(ours, 1_000)
        return b""

    with os.fdopen(theirs, "w") as stderr, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=read)))
        assert main([command, "-"], standalone_mode=False) == 2
    os.close(ours)
    assert b"Reading" in shown


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--config", "keep_recnt=3"], "unknown setting 'keep_recnt'; did you mean 'keep_recent'?"),
        (["--config", "keep_recent"], "--config 'keep_recent' is not of the form KEY=VALUE, such as keep_recent=20"),
        (["--config", "=4"], "--config '=4' is not of the form KEY=VALUE, such as keep_recent=20"),
        (["--config", "color=4"], "unknown setting 'color'; known settings: announce"),
        (["--config", "self=4"], "unknown setting 'self'; known settings: announce"),
        (
            ["--config", "summary_provider=foo"],
            "summary_provider cannot be set here: --provider names it; give an addr",
        ),
        (["--config", "summary_model_role=fast"], "summary_model_role cannot be set here: --provider names it; give"),
        (["--config", "focus=4", "--config", "focus=5"], "--config gives focus twice; keep one of them"),
        (["--config", 'persistence={"path": "a/file"}'], "persistence cannot be set here: a replay writes no history"),
        (["--window", "1e99999999"], "'1e99999999' is not a valid integer range"),
        (["--html", "--yes"], "--yes does not end in .html; name a file that does"),
        (["--html", "no/report.html"], "no/report.html cannot be written: there is no folder"),
        (["--provider", "provider-nix"], "no provider module 'provider-nix'"),
        (["--provider", "provider-nix"], "give an address and a model, as in --provider http://localhost:11434/v1"),
        (["--provider", "provider-nix"], "(installed: none); or offline, which is code without a model"),
        (["--provider", "http://localhost:1/v1"], "--provider http://localhost:1/v1 needs --model"),
        (["--provider", "ftp://x/v1", "--model", "m"], "base_url must be an http or https address"),
        (["--provider", "http://localhost:99999/v1", "--model", "m"], "base_url must be an http or https address"),
        (["--model", "qwen3"], "--model qwen3 has no provider that could run it; give an address and a model"),
    ],
)
def test_options_that_cannot_be_used_are_told_with_a_remedy(session: Path, options: list[str], says: str) -> None:
    told = run(session, *options)

    assert (told.exit_code, told.stdout) == (2, "")
    assert isinstance(told.exception, SystemExit)
    assert says in " ".join(told.stderr.split())
    assert [path.name for path in session.parent.iterdir()] == ["session.jsonl"]


def test_an_installed_provider_is_asked_and_its_window_holds(
    session: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named by its entry point, and cleaned up at the end."""
    name = install(session.parent, monkeypatch, "windowed", PROVIDER.format(options=""))
    told = run(session, "--provider", name, "--show-view")

    assert told.exit_code == 0, told.output
    assert "requests of at most 5,500." in words(told)
    assert "Goal: the user asked for something, and it was done." in told.stdout
    assert "Provider: fake." in told.stdout
    assert not line(told, "Provider calls").startswith("0 ")
    Path("closed").unlink()
    told = run(short, "--provider", name, "--model", "m-1", "--config", "max_tokens=3500")
    assert Path("asked").read_text() == "{'default_model': 'm-1'}"
    assert "requests of at most 3,500." in words(told)
    refused = refusal("replay", short, "--provider", name, "--window", 6_000)
    assert "provider-windowed has a window of its own; leave --window out, or set --config max_tokens=6000" in refused


def test_a_server_is_asked_by_its_address_and_the_name_of_the_model(session: Path) -> None:
    """Its window is the one that is given; without its answers there are fallbacks."""
    with serving(lambda body: "Goal: the server wrote this.") as server:
        told = run(session, "--provider", server.address, "--model", "qwen3", *NARROW, "--show-view")

    assert told.exit_code == 0, told.output
    assert "requests of at most 4,000." in words(told)
    assert "Provider: qwen3." in told.stdout
    assert "Goal: the server wrote this." in told.stdout
    assert {body["model"] for body in server.bodies} == {"qwen3"}
    assert f"{len(server.bodies)} " in line(told, "Provider calls")
    assert line(told, "Dollars") == "unknown the model has no list price here"


@pytest.mark.parametrize("command", ["replay", "exam"])
def test_a_server_that_is_not_there_is_named_with_the_reason(
    command: str, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_summarize.summaries.failures._BACKOFF", tenacity.wait_none())
    told = call(command, session, "--provider", "http://127.0.0.1:1/v1", "--model", "m", *NARROW, *YES[command])

    assert told.exit_code == {"replay": 3, "exam": 2}[command], told.output
    last = told.stderr.splitlines()[-1].removeprefix("Error: ")
    assert last.startswith("NO SUMMARIES: m was called ")
    assert " and wrote none: ProviderUnavailableError: no answer from http://127.0.0.1:1/v1/: ConnectError" in last
    assert last.endswith("(--provider, --model).")
    assert "Traceback" not in told.output


def test_a_provider_that_is_down_costs_summaries_and_no_check(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of warning is one line, and the last one says what it means; exit status 3."""
    source = PROVIDER.format(options="then=RateLimitError('slow down', retry_after=0)")
    told = run(session, "--provider", install(session.parent, monkeypatch, "down", source))

    assert told.exit_code == 3, told.output
    assert len(re.findall(r"^\S.*  ok  ", told.stdout, re.MULTILINE)) == 4
    calls, says = line(told, "Provider calls").split(maxsplit=1)
    assert says.startswith("for summaries: 0 tokens in, 0 out; ")
    assert " failed, so code wrote them" in words(told)
    *before, last = told.stderr.splitlines()
    assert 1 <= len(before) <= 6
    assert all(text.startswith(("warning: ", "error: ")) for text in before)
    assert last.startswith(f"NO SUMMARIES: fake was called {calls} times and wrote none: RateLimit")


def test_a_check_that_fails_is_named_and_ends_with_1(tmp_path: Path) -> None:
    path = store(tmp_path / "a.jsonl", [{"role": "system", "content": "rule " * 900}, user("a"), assistant("b")])

    told = run(path, "--window", 1_000)

    assert told.exit_code == 1
    assert line(told, "Within budget") == "FAILED no request is too large"
    assert line(told, "Pairs intact").startswith("ok ")
    last = told.stderr.splitlines()[-1]
    says = r"FAILED: Within budget: the request before message 2 holds [\d,]+ tokens, the budget is 500"
    assert re.fullmatch(says, last)


def test_ctrl_c_while_a_provider_is_asked_ends_with_130_and_one_line(
    session: Path, monkeypatch: pytest.MonkeyPatch, no_hang: None
) -> None:
    """The provider sends the signal itself when it is asked, and hangs."""
    # A test runner may have been started with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    name = install(session.parent, monkeypatch, "hanging", PROVIDER.format(options="then=interrupted"))
    told = run(session, "--provider", name)
    signal.signal(signal.SIGINT, before)

    assert (told.exit_code, told.stdout, told.stderr) == (130, "", "Interrupted.\n")
