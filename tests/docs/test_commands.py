"""Every command of the documentation runs; in CI only."""

from __future__ import annotations

import os
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
    for command in RUN[page]:
        run(command)
