"""The README is run: its Python blocks, its settings and its commands are what the code has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from context_summarize import Config
from context_summarize.config import ALIASES, SETTINGS
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{at}" for at in range(len(BLOCKS))])
def test_every_python_block_runs(block: str, tmp_path: Path) -> None:
    """Each block is a whole program that ends without an error, in a folder of its own."""
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_is_a_python_block() -> None:
    """So that the test above is one."""
    assert BLOCKS


def test_every_setting_is_named_and_every_named_setting_exists() -> None:
    """The table and the sentence below it name the settings of `Config`, and no others."""
    section = README.split("## Settings")[1].split("## Events")[0]
    named = set(re.findall(r"`([a-z_]+)`", section)) - {"summarize", "truncate", "system", "user", "default"}
    known = {*SETTINGS, *ALIASES}
    assert named - known <= {"compact", "memory", "recall"}
    assert known <= named


IN_WORDS = {"segment_tokens", "summary_tokens", "elide_tool_results", "cache"}
"""Settings whose default the table describes."""


def _written(value: object) -> str:
    """A default as the table has it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - IN_WORDS))
def test_the_defaults_of_the_table_are_the_defaults(name: str) -> None:
    """What the table says of a setting is what `Config` has; one value may stand for all keys of its row."""
    rows = [line for line in README.splitlines() if line.startswith("| `") and f"`{name}`" in line.split("|")[1]]
    assert len(rows) == 1
    names = re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", rows[0].split("|")[1]))
    values = [value.strip(" `") for value in rows[0].split("|")[2].split(",")]
    assert len(values) in (1, len(names))
    assert (values * len(names))[names.index(name)] == _written(getattr(Config(), name))
