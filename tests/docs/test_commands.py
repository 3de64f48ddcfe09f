"""Every command of the documentation runs, and the README shows what the demo prints; in CI only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import PAGES, commands, named
from tests.support.paths import ROOT

pytestmark = pytest.mark.ci

LEFT_OUT = ("make ", "pip install ", "python -m benchmarks.", ".venv/bin/")
"""Beginnings of commands that are not run: they install something, or run for long in an environment of their own."""

RUN = {page: [line for line in commands(page) if not line.startswith(LEFT_OUT)] for page in PAGES}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command in a folder that has the examples, with a home of its own; returns what it prints."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))

    def call(command: str) -> str:
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    return call


@pytest.mark.parametrize("page", [page for page, lines in RUN.items() if lines], ids=named)
def test_every_command_of_a_page_runs(page, run):
    """One after the other in one folder, as a reader would; each ends with exit status 0."""
    for command in RUN[page]:
        run(command)


def test_the_readme_shows_what_the_demo_prints(run):
    """Each line of its sample, figures included; only the time that a request waited varies."""
    sample, summary = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    printed = _plain(run("context-summarize replay examples/airline-desk.jsonl"))
    assert [line for line in sample.splitlines() if line.strip() != "…" and _plain(line) not in printed] == []

    view = json.loads(run("context-summarize replay examples/airline-desk.jsonl --show-view --json"))["last_view"]
    frame = summary.partition(",")[0]
    (shown,) = [str(row["content"]) for row in view if str(row["content"]).startswith(frame)]
    assert [line for line in summary.splitlines() if line.removesuffix(" …]") not in shown] == []


def _plain(text: str) -> str:
    """The text in one line, with single blanks, without milliseconds."""
    return re.sub(r"\s+", " ", re.sub(r"\d+ ms\b", "", text)).strip()
