"""Tables and saved figures. Each cell is a process that loads this file anew, so it imports little."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.report import run_all, save, table


def cell(number: int) -> dict[str, int]:
    if number > 1:
        raise RuntimeError("no more")
    return {"number": number}


@pytest.mark.ci  # its processes load all anew
def test_a_cell_that_fails_is_reported_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_all(cell, [(1,), (2,)], jobs=1)
    assert found == [{"number": 1}, {"cell": "2", "missing": "RuntimeError: no more"}]
    assert table(found, ("number", "facts")).splitlines()[2:] == ["| 1 |", "missing: 2: RuntimeError: no more"]
    assert "no more" in capsys.readouterr().err
    assert run_all(cell, [(2,)], jobs=1, sealed=True) == [{"cell": "2", "missing": "RuntimeError"}]
    assert "no more" not in capsys.readouterr().err


def test_figures_are_saved_beside_those_of_other_commands_with_four_significant_digits(tmp_path: Path) -> None:
    kept = {"facts": 0.123456, "calls": 123456}
    for name, figures in (("field", [{"facts": 0.5}]), ("cuts sealed", []), ("field", [kept, kept])):
        save(tmp_path / "all.json", name, figures)
    found = json.loads((tmp_path / "all.json").read_text())
    assert [*found] == ["field", "cuts sealed"]
    assert found["field"]["figures"] == 2 * [{"facts": 0.1235, "calls": 123456}]
    assert found["field"].keys() == {"date", "commit", "command", "figures"}
    assert found["cuts sealed"]["command"] == "python -m benchmarks.cuts --sealed"
