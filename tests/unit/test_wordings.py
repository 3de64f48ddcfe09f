"""The exact wordings of `Config` and of the commands stand in tests/golden; all other tests match what they mean.

After a change that is meant: `CONTEXT_SUMMARIZE_GOLDEN=write pytest tests/unit/test_wordings.py`, then read the diff.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_summarize.config import Config
from context_summarize.errors import ConfigError
from context_summarize.testing import tool_session
from tests.support import golden
from tests.support.cli import plain_terminal, refusal, store  # noqa: F401
from tests.unit.test_config import BAD

OTHERS: list[Any] = [
    5,
    {"keep_recents": 1},
    {"compaction_threshold": 0.8},
    {"target_usage": 0.5, "compact_threshold": 0.4},
]
"""What is wrong beyond the value of one setting."""


def refused(given: Any) -> str:
    """What a configuration is told."""
    with pytest.raises(ConfigError) as error:
        Config.from_mapping(given)
    return str(error.value)


def test_what_is_said_of_a_wrong_setting() -> None:
    """The first wrong value of every setting, and what is wrong with a configuration as a whole."""
    given = [*({key: values[0]} for key, values in BAD.items()), *OTHERS]
    golden.check("config", {repr(each): refused(each) for each in given})


REFUSALS = [
    "replay none.jsonl",
    "replay empty.jsonl",
    "replay session.jsonl --html none/report.html",
    "replay session.jsonl --prompts nix",
    "replay session.jsonl --prompts brief --config prompts=coding",
    "replay session.jsonl --config keep_recnt=1",
    "replay session.jsonl --config keep_recent",
    "replay session.jsonl --provider openai-compatible",
    "inspect none.jsonl",
    "inspect session.jsonl --config keep_recent=-1",
    "prompts check nix",
    "prompts copy nix new",
    "prompts copy brief taken",
    "cache stats --cache redis://127.0.0.1:1/0",
    "cache stats --cache memory",
    "cache clear --cache kept.sqlite3",
]
"""Commands that end with one line and exit status 2."""


def test_what_a_command_says_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each: what was seen, what is expected, what to do."""
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "session.jsonl", tool_session(3))
    store(tmp_path / "empty.jsonl", [])
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "frame.md").write_text("mine", "utf-8")
    (tmp_path / "kept.sqlite3").touch()
    said = {line: refusal(*line.split()).replace(str(tmp_path), "FOLDER") for line in REFUSALS}
    golden.check("commands", said)
