"""`inspect` and `prompts`: what a recording holds, where a prompt set is, and what is wrong with it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from context_summarize import __version__
from tests.support.cli import call, plain_terminal, refusal, store  # noqa: F401
from tests.support.rows import assistant, result, tool_session, user
from tests.support.rows import call as asks

HOST = {"role": "system", "content": "Be kind. " * 900}


def test_version_and_commands_are_told() -> None:
    assert __version__ in call("--version").stdout
    commands = re.findall(r"^  ([a-z]+)  ", call("-h").stdout, re.MULTILINE)
    assert commands == ["exam", "inspect", "prompts", "replay"]


def test_a_recording_is_told_by_roles_and_largest_rows(tmp_path: Path) -> None:
    told = call("inspect", store(tmp_path / "a.jsonl", [HOST, *tool_session(40)]))
    lines = [" ".join(line.split()) for line in told.stdout.splitlines()]

    assert (told.exit_code, told.stderr) == (0, "")
    [of_all] = re.findall(r"a\.jsonl: 161 rows, ([\d,]+) tokens, 160 messages to summarise\.", told.stdout)
    roles = {line.split()[0]: line.split()[1:] for line in lines if re.fullmatch(r"[a-z]+ \d+ [\d,]+", line)}
    assert [roles[name][0] for name in ("system", "user", "assistant", "tool")] == ["1", "40", "80", "40"]
    assert sum(int(size.replace(",", "")) for _, size in roles.values()) == int(of_all.replace(",", ""))
    at = lines.index("Message Tokens Role Tool")
    assert lines[at + 2] == f"{roles['system'][1]} system"
    assert re.fullmatch(r"\d+ \d+ tool lookup", lines[at + 3])


def test_broken_pairs_are_counted_and_named(tmp_path: Path) -> None:
    """A call at the end may still get its result."""
    rows = [user("a"), asks("1", "look"), user("b"), asks("2", "list"), assistant("c"), asks("3", "late")]
    many = [asks(str(at), f"look{at}") for at in range(10, 20)]
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "x"}]}

    told = call("inspect", store(tmp_path / "a.jsonl", [HOST, *rows, orphan])).stdout

    assert "calls without a result: look in message 2, list in message 4" in told
    assert "…" not in told
    assert "1 result without a call." in told
    lost = " ".join(call("inspect", store(tmp_path / "c.jsonl", many)).stdout.split())
    assert "9 calls without a result: look10 in message 1, " in lost
    assert 3 < lost.count(" in message ") < 7
    assert ", …. " in lost
    fine = call("inspect", store(tmp_path / "b.jsonl", [user("a"), asks("1"), result("1"), asks("2")])).stdout
    assert "without a" not in fine


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    told = call("prompts", "coding")
    assert told.exit_code == 0, told.output
    return Path(shutil.copytree(told.stdout.strip(), tmp_path / "mine"))


def test_what_is_wrong_with_a_set_is_told(mine: Path) -> None:
    """A replay tells the same."""
    (mine / "merge.md").write_text("---\nversoin: 1\n---\n$words $fence", "utf-8")
    told = call("prompts", mine)
    assert (told.exit_code, told.stdout) == (2, "")
    assert "merge.md, line 2: unknown key 'versoin'" in told.stderr
    played = call("replay", store(mine.parent / "a.jsonl", [user("a")]), "--config", f"prompts={mine}")
    assert (played.exit_code, played.stderr) == (2, told.stderr)


def test_a_set_that_is_not_there_is_one_line() -> None:
    """A name does not steer the terminal."""
    assert "available: brief, coding" in refusal("prompts", "nix")
    assert "\x1b" not in refusal("prompts", "\x1b[31mnix")
