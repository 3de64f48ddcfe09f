"""The pages have what `benchmarks.day` computes."""

from __future__ import annotations

import re

import pytest

from benchmarks import day
from benchmarks.sessions import ROOT


@pytest.mark.ci
async def test_the_pages_say_what_a_day_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Dollars for each model in the table, but for a cent or two; the README has those of the first model."""
    await day.main()
    made = re.findall(r"^(.+): .*?([\d.]+), \D*([\d.]+), \D*([\d.]+); \D*([\d.]+)$", capsys.readouterr().out, re.M)
    page = (ROOT / "docs" / "start.md").read_text("utf-8").replace("**", "")
    told = re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    for (there, *dollars), (here, *played) in zip(told, made, strict=True):
        assert there == here
        assert list(map(float, dollars)) == pytest.approx(list(map(float, played)), abs=0.02)
    model, _, summaries, together, whole = told[0]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"costs {together} dollars with {model}, {summaries} of them" in readme
    assert f"whole history costs {whole} " in readme
