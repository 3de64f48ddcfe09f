"""What the tests of the commands share: recordings, a terminal without surprises, and how a command is called."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from context_summarize.cli import main

NARROW = ["--window", "6666"]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, and nothing that asks for colours or against them; for every test of a file that imports it."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")


def store(path: Path, rows: list) -> Path:
    """A recording."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def call(*arguments: object) -> Result:
    """What came of a command; Ctrl-C reaches it, also where a test runner ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return CliRunner().invoke(main, [*map(str, arguments)])
    finally:
        signal.signal(signal.SIGINT, before)


def refusal(*arguments: object) -> str:
    """The one line with which a command refuses."""
    told = call(*arguments)
    assert told.exit_code == 2, told.output
    assert told.stdout == ""
    assert isinstance(told.exception, SystemExit)
    [line] = told.stderr.splitlines()
    return line
