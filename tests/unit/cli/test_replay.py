"""`replay` for machines, as a page, with other prompts, with a server, and on narrow terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_summarize.testing import user
from tests.support import chat_server
from tests.support.cli import NARROW, call, plain_terminal, recorded, refusal, store  # noqa: F401
from tests.support.paths import ROOT

KEYS = {
    *("file", "provider", "window", "budget", "messages", "history_tokens", "requests", "largest_view"),
    *("stable_share", "provider_calls", "failed_calls", "failed_summaries", "provider_input_tokens"),
    "unused_summaries",
    "provider_output_tokens",
    *("seconds", "ok", "boundaries", "checks"),
}


@pytest.fixture
def session(tmp_path):
    return recorded(tmp_path)


# --- for machines ---------------------------------------------------------------------------------------------------


def test_json_is_one_object_with_the_keys_that_the_help_names(session):
    """Nothing but the object stands on stdout, and a key that is printed is documented."""
    told = call("replay", session, *NARROW, "--json")

    assert (told.exit_code, told.stderr) == (0, "")
    data = json.loads(told.stdout)
    assert data.keys() == KEYS
    assert (data["file"], data["messages"], data["window"], data["budget"]) == ("session.jsonl", 160, 6_000, 4_000)
    assert data["ok"] is True
    assert len(data["boundaries"]) >= 3
    assert data["boundaries"][0]["before_tokens"] > data["boundaries"][0]["after_tokens"] > 0
    assert {check["name"] for check in data["checks"] if check["ok"]} >= {"Pairs intact", "Within budget"}
    documented = " ".join(call("replay", "--help").stdout.split())
    assert [key for key in KEYS if f"{key}," not in documented and f"{key} " not in documented] == []


def test_json_holds_the_last_view_when_it_is_asked_for(session):
    """The rows are those that an agent would have sent."""
    data = json.loads(call("replay", session, *NARROW, "--json", "--show-view").stdout)

    assert any(row.get("metadata", {}).get("source") == "context-summarize" for row in data["last_view"])


def test_json_of_a_failed_check_says_so_and_ends_with_1(tmp_path):
    """The object is whole, and stderr holds the line that a reader would have seen."""
    rows = [{"role": "system", "content": "rule " * 900}, user("a"), {"role": "assistant", "content": "b"}]

    told = call("replay", store(tmp_path / "a.jsonl", rows), "--window", 1_000, "--max-output", 100, "--json")

    assert told.exit_code == 1
    assert json.loads(told.stdout)["ok"] is False
    assert [line.split(":")[0] for line in told.stderr.splitlines()][-1] == "FAILED"


def test_json_is_ascii_and_does_not_steer_a_terminal(tmp_path):
    """Recorded text is escaped, and is the same again when it is read."""
    text = "\x1b]0;title\x07 \x7f \x9b31m é \ud800"

    told = call("replay", store(tmp_path / "a.jsonl", [user(text), user("x"), {"role": "assistant", "content": "y"}]))
    shown = call("replay", tmp_path / "a.jsonl", "--json", "--show-view").stdout

    assert told.exit_code == 0, told.output
    assert all(char == "\n" or " " <= char <= "~" for char in shown)
    assert json.loads(shown)["last_view"][0]["content"] == text


# --- a page ---------------------------------------------------------------------------------------------------------


def test_html_is_written_beside_what_is_printed(session, tmp_path):
    """The page goes to the file that is named, and the text to stdout as ever."""
    page = tmp_path / "report.html"

    told = call("replay", session, *NARROW, "--html", page)

    assert told.exit_code == 0, told.output
    assert "Checks" in told.stdout
    assert page.read_text("utf-8").lower().startswith("<!doctype html>")
    assert "session.jsonl" in page.read_text("utf-8")


def test_html_into_a_folder_that_is_not_there_is_refused_before_the_replay(tmp_path):
    """A run of minutes must not end with a wrong path: the recording is not even read."""
    line = refusal("replay", tmp_path / "none.jsonl", "--html", tmp_path / "no" / "report.html")

    assert "report.html cannot be written: there is no folder" in line


def test_html_in_the_place_of_a_folder_is_refused_before_the_replay(tmp_path):
    """The recording is not even read."""
    line = refusal("replay", tmp_path / "none.jsonl", "--html", tmp_path)

    assert "cannot be written: it is a folder; name a file in it" in line


def test_html_that_cannot_be_written_is_one_line(session, tmp_path):
    """Here by a name that is too long for the disk."""
    assert "cannot be written: File name too long" in refusal("replay", session, "--html", tmp_path / ("x" * 300))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is there on Linux alone")
def test_html_for_which_there_is_no_space_is_one_line(session):
    """That shows only when the page is written."""
    assert "cannot be written: No space left" in refusal("replay", session, "--html", "/dev/full")


# --- prompts --------------------------------------------------------------------------------------------------------


def test_prompts_names_a_set_as_the_setting_does(session, tmp_path):
    """The frame of a copied and changed set is what the view shows."""
    assert call("prompts", "copy", "brief", tmp_path / "mine").exit_code == 0
    frame = tmp_path / "mine" / "frame.md"
    frame.write_text(frame.read_text("utf-8").replace("[", "[A frame of my own. ", 1), "utf-8")

    by_option = call("replay", session, *NARROW, "--show-view", "--prompts", tmp_path / "mine")
    by_setting = call("replay", session, *NARROW, "--show-view", "--config", f"prompts={tmp_path / 'mine'}")

    assert by_option.exit_code == by_setting.exit_code == 0, by_option.output
    assert "A frame of my own" in " ".join(by_option.stdout.split())
    assert "A frame of my own" in " ".join(by_setting.stdout.split())


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_a_set_that_is_not_there_or_named_twice_is_one_line(session, command):
    """The line names the sets there are, or both options."""
    assert "available: brief, coding, conversation, default" in refusal(command, session, "--prompts", "nix")
    twice = refusal(command, session, "--prompts", "brief", "--config", "prompts=coding")
    assert twice == "Error: --prompts and --config prompts=… both name the prompt set; give only one of them"


# --- a server -------------------------------------------------------------------------------------------------------


@pytest.fixture
def local_server() -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, str(Path(chat_server.__file__))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.kill()


def server_options(base_url: str, *more: object) -> list:
    options = ["--provider", "openai-compatible", "--base-url", base_url, "--model", chat_server.MODEL]
    return [*options, "--config", "max_concurrency=1", *more]


def test_a_real_server_writes_the_summaries_and_names_its_window(session, local_server):
    """Window and usage come over a real connection, and its text stands in the last view."""
    waited_for = ("--config", "prefetch_threshold=none", "--config", "elide_tool_results=none")
    more = ("--json", "--show-view", "--max-output", 2_000, *waited_for)
    told = call("replay", session, *server_options(local_server, *more))

    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert (data["provider"], data["window"]) == (f"openai-compatible ({chat_server.MODEL})", chat_server.WINDOW)
    answered = data["provider_calls"] - data["failed_calls"]
    assert answered > 0
    assert data["provider_input_tokens"] == 900 * answered
    assert any(chat_server.SUMMARY in str(row["content"]) for row in data["last_view"])


def test_a_window_that_is_given_goes_before_the_servers(session, local_server):
    """`--window` and `--max-output` are taken as they are."""
    told = call("replay", session, *server_options(local_server, "--json", *NARROW))

    assert (json.loads(told.stdout)["window"], json.loads(told.stdout)["budget"]) == (6_000, 4_000)


def test_a_server_that_is_not_there_costs_summaries_and_no_check(session):
    """Nothing listens at port 9: warnings of one line each, fallback summaries, and every check passes."""
    patience = ("--config", "retry_attempts=1")

    told = call("replay", session, *server_options("http://127.0.0.1:9/v1", "--json", *NARROW, *patience))

    assert told.exit_code == 3, told.output
    data = json.loads(told.stdout)
    assert data["failed_calls"] == data["provider_calls"] > 0
    assert sum(line["digests"] for line in data["boundaries"]) > 0
    assert "no connection to http://127.0.0.1:9/v1" in told.stderr
    *before, last = told.stderr.splitlines()
    assert all(line.startswith(("warning: ", "error: ", "(")) for line in before)
    assert last.startswith("NO SUMMARIES: ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--provider", "openai-compatible"], "needs --base-url and --model, such as"),
        (["--provider", "openai-compatible", "--model", "m"], "openai-compatible needs --base-url, such as"),
        (["--model", "m"], "Error: --model needs --provider openai-compatible"),
        (["--key-env", "X", "--provider", "provider-x"], "Error: --key-env needs --provider openai-compatible"),
        (server_options("ftp://x/v1"), "base_url must be an http or https address"),
        (server_options("http://x/v1", "--key-env", "NO_SUCH_KEY"), "variable NO_SUCH_KEY is not set"),
    ],
)
def test_options_of_a_server_that_do_not_fit_are_one_line(session, options, says):
    """Each line says which option is missing, or what is wrong with the one that was given."""
    assert says in refusal("replay", session, *options)


def test_without_httpx_the_line_names_a_command_that_works_anywhere(session, monkeypatch):
    """From a checkout too: the package itself need not be on an index. It asks for what the extra asks for."""
    monkeypatch.setitem(sys.modules, "httpx", None)

    line = refusal("replay", session, *server_options("http://127.0.0.1:9/v1"))

    assert 'python -m pip install "httpx>=0.27"' in line
    assert ".venv/bin/python -m pip install '.[openai-compatible]'" in line
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert extras["openai-compatible"] == ["httpx>=0.27"]


# --- terminals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 70, 80, 120])
def test_the_table_of_compactions_is_whole_at_any_width(session, monkeypatch, columns):
    """A narrow terminal shows fewer columns rather than cut figures, and no line is wider than it is."""
    monkeypatch.setenv("COLUMNS", str(columns))

    lines = call("replay", session, *NARROW).stdout.splitlines()

    assert max(map(len, lines)) <= columns
    [header] = [line for line in lines if "Before → after" in line and "Why" in line]
    assert "…" not in "".join(lines)
    assert ("Cached" in header) == (columns > 70)


def start(command: list) -> subprocess.Popen:
    """The command in a process of its own, as a shell starts it."""
    code = "from context_summarize.cli import main; main()"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, command)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("command", ["replay", "inspect"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_who_stops_listening_is_no_error(session, command, form):
    """`| head` closes the pipe: no traceback, and exit status 0."""
    with start([command, session, *NARROW, *form]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
        status = process.wait(60)

    assert (status, told) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is there on Linux alone")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_disk_that_is_full_is_one_line(session, form):
    """What cannot be written is told on stderr."""
    code = "from context_summarize.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "inspect", str(session), *NARROW, *form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 2
    assert done.stderr == "Error: the result cannot be written: No space left on device\n"
