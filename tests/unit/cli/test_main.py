"""The command line on real sessions, on files that hold none, and on terminals."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from context_summarize import ContextSummarizeError, __version__
from context_summarize.cli import replay as cli_replay
from context_summarize.cli.main import main
from context_summarize.testing import assistant, calls, result, tool_session, user
from tests.support.cli import EXAMPLE, NARROW, call, install, plain_terminal, recorded, refusal, store  # noqa: F401

PROVIDER = """
from context_summarize.testing import ScriptedProvider

async def mount(coordinator, config):
    await coordinator.mount("providers", ScriptedProvider(context_window={window}, max_output_tokens=500), name="fake")
"""


@pytest.fixture
def session(tmp_path):
    return recorded(tmp_path)


def run(*arguments: object) -> Result:
    return call("replay", *arguments)


def refused(*arguments: object) -> str:
    """The one line with which the command refuses."""
    return refusal("replay", *arguments)


def number(told: Result, label: str) -> int:
    found = re.search(rf"^{label}\s+([\d,]+)", told.stdout, re.MULTILINE)
    assert found, told.output
    return int(found[1].replace(",", ""))


def compaction_lines(told: Result) -> list[str]:
    return re.findall(r"^ *[\d,]+ +[\d,]+ → [\d,]+ .*$", told.stdout, re.MULTILINE)


# --- what it shows --------------------------------------------------------------------------------------------------


def test_the_example_passes_all_checks_with_at_least_five_compactions():
    told = run(EXAMPLE)

    assert told.exit_code == 0, told.output
    assert told.stderr == ""
    assert len(compaction_lines(told)) >= 5
    assert "FAILED" not in told.stdout
    assert len(re.findall(r"^\S.*  ok  ", told.stdout, re.MULTILINE)) == 5
    assert number(told, "Messages") == 1_335
    assert number(told, "Largest request") <= 35_000
    assert "a window of 40,000 tokens, 35,000 of them for a request" in " ".join(told.stdout.split())
    assert max(map(len, told.stdout.splitlines())) <= 80


def test_each_compaction_is_one_line_that_says_what_was_replaced(session):
    told = run(session, *NARROW)

    lines = compaction_lines(told)
    assert len(lines) >= 3
    for line in lines:
        assert re.fullmatch(r" *[\d,]+ +([\d,]+) → ([\d,]+) +\d+ +\d+ +\d+ +\d+ +[\d,]+ ms +(filling|must fit) *", line)
    assert number(told, "Provider calls") > 0


def test_it_says_that_the_offline_provider_is_no_model(session):
    assert "Provider: offline. It is not a model" in run(session).stdout


def test_a_session_that_fits_says_that_no_compaction_was_needed(tmp_path):
    told = run(store(tmp_path / "short.jsonl", tool_session(2)))

    assert told.exit_code == 0
    assert "None: no request became that large." in told.stdout
    assert "Each of these requests had passed the threshold or the budget" in told.stdout
    assert compaction_lines(told) == []


def test_a_session_without_an_assistant_message_says_that_nothing_was_requested(tmp_path):
    told = run(store(tmp_path / "a.jsonl", [user("x")]), "--show-view")

    assert told.exit_code == 0
    assert "holds no assistant message" in told.stdout
    assert "Last request" not in told.stdout


def test_the_last_view_is_shown_with_its_summaries_marked(session):
    told = run(session, *NARROW, "--show-view")

    assert told.exit_code == 0
    assert re.search(r"^ *\d+  ◆ summary +\[Summary", told.stdout, re.MULTILINE)
    assert re.search(r"^ +\d+ to \d+ ", told.stdout, re.MULTILINE)
    assert re.search(r"^ *\d+  user +Please look up order ORD00039", told.stdout, re.MULTILINE)
    assert 'call lookup({"order": "ORD00039"})' in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80


def test_a_long_row_is_shown_on_a_few_lines_and_many_calls_are_counted(tmp_path):
    made = calls(*((str(at), "look", {"at": at}) for at in range(5)), text="all at once")
    rows = [user("word " * 500), made, *(result(str(at), "") for at in range(5)), assistant("done")]
    told = run(store(tmp_path / "a.jsonl", rows), "--show-view", "--window", 20_000)

    assert len(re.findall("^.*word word.*$", told.stdout, re.MULTILINE)) == 3
    assert "word …" in told.stdout
    assert told.stdout.count("call look(") == 3
    assert "and 2 more calls" in told.stdout
    assert told.stdout.count("(empty)") == 5


def test_what_a_recording_holds_does_not_steer_the_terminal(tmp_path):
    path = store(tmp_path / "a\x1b[31m.jsonl", [user("[bold]x[/] \x1b]0;title\x07 \ud800"), assistant("y")])

    told = run(path, "--show-view")

    assert told.exit_code == 0, told.output
    assert "\x1b" not in told.output
    assert "\x07" not in told.output
    assert "[bold]x[/]" in told.stdout


def test_a_terminal_that_knows_ascii_only_is_no_reason_to_fail(session):
    told = CliRunner(charset="ascii").invoke(main, ["replay", str(session), *NARROW, "--show-view"])

    assert told.exit_code == 0, told.output
    assert "? summary" in told.stdout


def test_colours_and_a_progress_bar_appear_on_a_terminal_only(session, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")

    told = run(session, *NARROW, "--show-view")

    assert "Replaying session.jsonl" in told.stderr
    assert "160/160" in told.stderr
    assert "compactions" in told.stderr
    assert "\x1b[1;35m◆ summary" in told.stdout
    assert "\x1b[1;34massistant" in told.stdout
    assert "\x1b[1;32mok" in told.stdout


# --- settings -------------------------------------------------------------------------------------------------------


def test_settings_reach_the_module_as_json_text_or_none(session):
    told = run(
        session,
        *NARROW,
        *("--config", "compaction_strategy=truncate"),
        *("--config", "max_tokens=3000"),
        *("--config", "prefetch_threshold=none"),
        *("--config", 'redact=["a=b"]'),
    )

    assert told.exit_code == 0, told.output
    assert number(told, "Provider calls") == 0
    assert "3,000 of them for a request" in told.stdout


@pytest.mark.parametrize("between", [" ", ", ", ","])
def test_several_settings_may_stand_in_one_option(session, between):
    """As in `compare`, whose best column is pasted from there."""
    pairs = ["compaction_strategy=truncate", "max_tokens=3000", "prefetch_threshold=none", 'redact=["a=b, c=d"]']

    told = run(session, *NARROW, "--config", between.join(pairs), "--config", "keep_recent=4")

    assert told.exit_code == 0, told.output
    assert number(told, "Provider calls") == 0
    assert "3,000 of them for a request" in told.stdout


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("keep_recnt=3", "Error: unknown setting 'keep_recnt'; did you mean 'keep_recent'?"),
        ("keep_recent=-1", "Error: keep_recent must be a whole number of 0 or more, got -1; use 0"),
        ("keep_recent=many", "got 'many'"),
        ("keep_recent=" + "[" * 50_000, "got '[["),
        ("keep_recent", "Error: --config 'keep_recent' has no value; expected KEY=VALUE"),
        ("prompts=no-such-set", "Error: prompts 'no-such-set'"),
        ("keep_recent=4 target_usage", "target_usage has no value; expected KEY=VALUE"),
        ("keep_recent=4 keep_recent=5", "gives keep_recent twice"),
        ("keep_recent=4 keep_recnt=3", "Error: unknown setting 'keep_recnt'; did you mean 'keep_recent'?"),
        ('prompts="no keep_recent"', "Error: prompts 'no keep_recent'"),
    ],
)
def test_a_wrong_setting_is_answered_with_one_line(session, setting, says):
    assert says in refused(session, "--config", setting)


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no messages"),
        (b"\n\n", "holds no messages"),
        (b'{"role": "user", "content": "x"}\n\nnonsense\n', "line 3 is not JSON: Expecting value (column 1)"),
        (b'{"role": "user", "content": "\xe9"}\n', "line 1 is not UTF-8"),
        (b'{"role": "user"}\n{"role": "robot"}\n', "line 2 is not a message: unknown role 'robot'"),
        (b'{"role": "user"}\n"text"\n', "line 2 is not a message: a message must be a dict"),
    ],
)
def test_a_file_without_a_session_is_answered_with_one_line(tmp_path, content, says):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)

    line = refused(path)

    assert line.startswith(f"Error: {path}")
    assert says in line


def test_a_missing_file_a_directory_and_a_name_of_two_lines_are_answered_with_one_line(tmp_path):
    assert "none.jsonl cannot be read: No such file" in refused(tmp_path / "none.jsonl")
    assert "is a directory" in refused(tmp_path)
    assert "two lines cannot be read" in refused(tmp_path / "two\nlines")


# --- providers ------------------------------------------------------------------------------------------------------


def test_an_unknown_provider_is_answered_with_the_installed_ones(session):
    assert refused(session, "--provider", "provider-nix").startswith("Error: no provider module 'provider-nix'; ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "a window of 7,000 tokens, 5,500 of them for a request"),
        (["--window", 6_000, "--max-output", 1_500], "requests of at most 3,500 tokens"),
        (["--window", 8_000], "requests of at most 3,000 tokens"),
        (["--max-output", 2_000], "requests of at most 4,000 tokens"),
    ],
)
def test_an_installed_provider_is_asked_and_its_window_holds_unless_another_is_given(
    session, tmp_path, monkeypatch, options, says
):
    name = install(tmp_path, monkeypatch, "windowed", PROVIDER.format(window=7_000))

    told = run(session, "--provider", name, *options)

    assert told.exit_code == 0, told.output
    assert says in " ".join(told.stdout.split())
    assert "Provider: fake." in told.stdout
    assert number(told, "Provider calls") > 0


def test_an_installed_provider_without_a_window_leaves_the_budget_to_the_settings(session, tmp_path, monkeypatch):
    name = install(tmp_path, monkeypatch, "windowless", PROVIDER.format(window=0))

    told = run(session, "--provider", name, "--max-output", "2000", "--config", "max_tokens=9000")

    assert "requests of at most 9,000 tokens" in " ".join(told.stdout.split())


def test_a_provider_that_is_down_costs_no_check_and_is_told_in_one_loud_line(session, tmp_path, monkeypatch):
    broken = "\nfrom amplifier_core.llm_errors import AuthenticationError\n" + PROVIDER.replace(
        "ScriptedProvider(", "ScriptedProvider(then=AuthenticationError('no key'), "
    )
    name = install(tmp_path, monkeypatch, "broken", broken.format(window=6_000))

    told = run(session, "--provider", name)

    assert told.exit_code == 3, told.output
    assert "every summary failed" in " ".join(told.stdout.split())
    assert "FAILED" not in told.stdout
    [shouted] = [line for line in told.stderr.splitlines() if line.startswith("NO SUMMARIES: fake was called ")]
    assert shouted.endswith("written by code. The warnings above say why.")
    shown = re.findall(r"^(?:error|warning): ", told.stderr, re.MULTILINE)
    assert 1 <= len(shown) <= 5
    assert "Traceback" not in told.output


def test_log_lines_are_shown_up_to_five_and_then_counted(session, monkeypatch):
    async def replay(*args, **kwargs):
        for at in range(7):
            logging.getLogger("anything").warning("line\n%d", at)
        raise ContextSummarizeError("the end")

    monkeypatch.setattr(cli_replay, "replay", replay)

    told = run(session)

    assert told.stderr.splitlines() == [
        *(f"warning: line {at}" for at in range(5)),
        "(2 more warnings)",
        "Error: the end",
    ]


# --- how it ends ----------------------------------------------------------------------------------------------------


def test_a_check_that_fails_is_marked_named_and_ends_with_1(tmp_path):
    path = store(tmp_path / "a.jsonl", [{"role": "system", "content": "rule " * 900}, user("a"), assistant("b")])

    told = run(path, "--window", 1_000, "--max-output", 100)

    assert told.exit_code == 1
    assert re.search(r"^Within budget +FAILED +1 of 1 view  no", told.stdout, re.MULTILINE)
    assert re.search(r"^Pairs intact +ok", told.stdout, re.MULTILINE)
    last = told.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"FAILED: Within budget: the request before message 2 holds [\d,]+ tokens, the budget is 500", last
    )


def test_an_interruption_ends_with_130_and_one_line(session, monkeypatch):
    async def replay(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_replay, "replay", replay)

    told = run(session)

    assert (told.exit_code, told.stdout, told.stderr) == (130, "", "Interrupted.\n")


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not there on Windows")
def test_ctrl_c_while_a_provider_is_asked_ends_with_130_and_no_traceback(session, tmp_path, monkeypatch):
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
    name = install(tmp_path, monkeypatch, "hanging", source)
    # A test runner may have been started with SIGINT ignored, which children inherit.
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    start += "from context_summarize.cli import main; main()"

    told = subprocess.run(
        [sys.executable, "-c", start, "replay", session, "--provider", name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(EXAMPLE.parents[1])])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (told.returncode, told.stdout, told.stderr) == (130, "", "Interrupted.\n")


def test_the_log_is_left_as_it_was(session):
    before = list(logging.getLogger().handlers)
    run(session)

    assert logging.getLogger().handlers == before


# --- help -----------------------------------------------------------------------------------------------------------


def test_version_and_help_are_told():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output
    assert "replay" in CliRunner().invoke(main, ["-h"]).output
    told = run("--help").output
    for word in ("FILE.jsonl", "--window", "--max-output", "--provider", "--config", "--show-view", "Exit status"):
        assert word in told


# --- what was mended or chosen for the user ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["inspect", "replay"])
def test_an_output_that_leaves_too_little_is_lowered_in_one_line(session, command):
    told = call(command, session, "--window", 6_000, "--max-output", 50_000)

    assert told.stderr.splitlines() == [
        "note: --max-output is lowered from 50,000 to 2,000 tokens: with the safety margin of 1,000 it would leave too "
        "little of a window of 6,000; a request may hold 3,000"
    ]
    assert call(command, session, "--window", 9_000).stderr == ""


def test_columns_that_lower_the_output_alike_say_so_once(session):
    told = call("compare", session, "--window", 6_000, "--max-output", 5_500, "--config", "keep_recent=2")

    assert told.stderr.count("--max-output is lowered from 5,500 to 2,000 tokens") == 1


def test_the_output_of_an_installed_provider_is_told_too(session, tmp_path, monkeypatch):
    name = install(tmp_path, monkeypatch, "lowered", PROVIDER.format(window=7_000))

    told = run(session, "--provider", name, "--max-output", 7_000)

    assert "note: --max-output is lowered from 7,000 to 2,500 tokens" in told.stderr
    assert "--max-output" not in run(session, "--provider", name).stderr


@pytest.mark.parametrize("command", ["inspect", "replay"])
def test_a_file_that_is_still_being_written_is_read_to_its_last_whole_line(session, command):
    rows = session.read_text("utf-8").splitlines(keepends=True)
    session.write_text("".join(rows[:20]) + rows[20][:15], "utf-8")

    told = call(command, session, *NARROW, "--json")

    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["messages"] == 20
    [line] = told.stderr.splitlines()
    assert line.startswith(f"note: {session}, line 21 is cut off")


def test_calls_without_a_result_are_counted_on_stderr(tmp_path):
    made = calls(("1", "look", {}), ("2", "look", {}))

    told = run(store(tmp_path / "a.jsonl", [user("a"), made, user("b"), assistant("c")]))

    assert told.exit_code == 0, told.output
    assert told.stderr.startswith("note: 2 tool calls had no result: look in message 2, look in message 2; ")


def test_a_provider_that_is_none_is_answered_with_what_the_option_takes(session, tmp_path, monkeypatch):
    line = refused(session, "--provider", "anthropic")

    for part in (
        "offline (code, no model)",
        "openai-compatible (a server",
        "such as provider-anthropic;",
        "Install the",
    ):
        assert part in line
    assert "'ofline' (did you mean offline?); expected" in refused(session, "--provider", "ofline")
    name = install(tmp_path, monkeypatch, "mine", PROVIDER.format(window=7_000))
    assert f"no provider module 'mine' (did you mean {name}?)" in refused(session, "--provider", "mine")
