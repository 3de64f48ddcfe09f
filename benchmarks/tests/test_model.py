"""The local model: how its engine starts and ends, and a session with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.model.server import PYTHON_ENV, EngineError, serving
from benchmarks.model.sessions import played, shortened
from benchmarks.real import recordings
from benchmarks.tokens import count, measure


def test_an_engine_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no engine here >&2; exit 3\n", "utf-8")
    python.chmod(0o755)
    monkeypatch.setenv(PYTHON_ENV, str(python))
    with pytest.raises(EngineError, match=r"make model(?s:.*)no engine here"), serving():
        pass


def test_a_session_is_cut_to_its_first_rows_with_the_questions_about_them() -> None:
    (whole,) = recordings.load_all()
    part = shortened(whole, 10_000)
    assert 10_000 <= sum(measure(row, count) for row in part.rows) < 20_000
    assert 0 < len(part.questions) < len(whole.questions)
    assert all(max(one.sources) < len(part.rows) for one in part.questions)


@pytest.mark.model
def test_a_short_session_is_summarised_by_the_real_model() -> None:
    """No request is lost; the model has read and written something."""
    found = played("ours", shortened(recordings.load_all()[0], 9_000))
    assert (found["lost"], found["over_budget"], found["broken"]) == (0, 0, 0)
    assert found["calls"] > 0
    assert found["wrote"] > 0
    assert found["view_last"] < 5_000
