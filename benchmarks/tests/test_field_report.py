"""The grid and the report of `benchmarks/field`, from made-up results and from single cells."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.field import __main__ as command
from benchmarks.field import grid, model, report, scenarios
from benchmarks.field.conclusions import conclusions
from benchmarks.field.contestants import FRUGAL, entries, profiles
from benchmarks.field.result import Prices, Result


def fake(cell: grid.Cell) -> Result:
    """Results that tell contestants apart; one cannot be run, and the one with the most facts breaks the budget."""
    if cell.contestant == "Hermes":
        raise RuntimeError("not installed")
    facts = {"ours": 0.9, "Strands": 0.5, "PydanticAI": 0.4, "LangChain": 0.3, "AgentFramework": 1.0}
    result = Result(cell.contestant, cell.contestant, cell.scenario, cell.seed, tokens=1_000, requests=10)
    result.keep = cell.keep or 0.95
    result.facts_end = (facts.get(cell.contestant, 0.1) + cell.seed / 100) * result.keep / 0.95
    result.facts_equal = {"ours": 0.2, "ours, lean": 0.7, "Strands": 0.4}.get(cell.contestant, 0.1)
    result.over_budget = 3 if cell.contestant == "AgentFramework" else 0
    result.facts_by = dict.fromkeys(("user", "assistant", "tool", model.CODE, model.PROSE), 0.5)
    result.price_main, result.waited, result.cpu_mean, result.cpu_p50 = 1e6, 0.1, 2.0, 1.0
    result.series = [(100, 50), (200, 80)]
    result.seconds = grid.SLOW + 1 if cell.contestant == "LangChain" else 1
    result.errors = {"OddError": 2} if cell.contestant == "Strands" else {}
    return result


@pytest.fixture
def whole() -> grid.Grid:
    """A grid of such results."""
    return grid.run_grid([0, 1], fake, contestants=list(entries()))


def test_the_other_sessions_are_for_ours_and_the_two_best_sound_peers(whole: grid.Grid) -> None:
    """A peer that breaks the budget is not among the best, however much its views hold."""
    assert whole.best_peers() == ["Strands", "PydanticAI"]
    assert whole.names("chat") == ["ours", "Strands", "PydanticAI"]
    assert len(whole.of("ours")) == 2
    assert len(whole.of("ours", "chat")) == 1
    assert len(whole.of("LangChain")) == 1, "too slow for a second seed"


def test_every_profile_is_a_contestant_with_its_own_trigger() -> None:
    """The default too: the trigger of the terms is for the others."""
    assert profiles() == ["ours", *(f"ours, {name}" for name in ("lean", "frugal", "verbatim"))]
    for name in profiles()[1:]:
        assert entries()[name].make.settings == f"profile: {name.removeprefix('ours, ')}"


def test_the_report_names_everyone_and_what_was_not_run(whole: grid.Grid) -> None:
    """Tables are whole, ranges are shown, and what a reader may conclude comes first."""
    page = report.markdown(whole, ["frontier.svg"], "make bench-field", Prices(), model.Traits())
    assert page.split("\n\n")[1].splitlines() == conclusions(whole)
    assert "Not run: Hermes" in page
    assert "OddError × 2" in page
    assert "benchmarks/frontier.svg" in page
    assert "benchmarks/views.svg" not in page
    assert "| ours | 90% (90% … 91%) |" in page
    assert f"| ours, {FRUGAL} | 10% | 9% | 8% |" in page, "with stand-ins that keep less"
    for block in page.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1, block


def test_the_page_opens_with_five_sentences_made_from_the_figures(whole: grid.Grid) -> None:
    """Ours against the best peer that broke nothing; the last says what a stand-in cannot show."""
    facts, price, waiting, cpu, last = conclusions(whole)
    assert "holds 90% of 400 planted facts, and that of the best other library (Strands) 50%;" in facts, (
        "not who broke it"
    )
    assert "cut to 25% of the window, this module holds 20% (70% with `profile: lean`, whose requests" in facts
    assert "1.00 times the 1.00 million of the cheapest of all (LangChain, which holds 30%)" in price
    assert "55%" not in price, "no peer holds as much"
    assert f"`profile: {FRUGAL}` this module costs 1.00 million and holds 11%" in price
    assert "10.0% of the model's own latency" in waiting
    assert "none of its requests were lost" in waiting
    assert "2.00 ms of CPU, counting of tokens included; that is 1.00 times" in cpu
    assert "cannot show" in last
    assert "probability of 95%; with one that keeps 80%, this module holds 76% of the facts at the end" in last
    assert last.endswith("(Strands) 42%.")


def test_the_sentences_tell_a_fair_price_and_what_broke(whole: grid.Grid) -> None:
    """A peer that is cheaper and holds enough is named with how much cheaper it is."""
    for one in whole.results:
        if one.name == "PydanticAI":
            one.facts_end, one.price_main, one.waited = 0.6, 0.5e6, 0.0
    whole.of("ours")[0].over_budget = 1
    _, price, waiting, *_ = conclusions(whole)
    assert (
        "2.00 times the 0.50 million of the cheapest other library that holds at least 55% of the facts (PydanticAI)"
        in price
    )
    assert "(PydanticAI) for 0.0%; 1 of its requests was lost, too large" in waiting


def test_without_ours_or_a_peer_nothing_is_concluded(whole: grid.Grid) -> None:
    """`--only` may leave either out."""
    for left in ({"ours", "KeepLast"}, {"Strands"}):
        some = grid.Grid([one for one in whole.results if one.name in left])
        assert len(conclusions(some)) == 1
        assert "nothing to conclude" in report.markdown(some, [], "x", Prices(), model.Traits())


def test_ours_is_held_against_the_best_peer_of_each_column(whole: grid.Grid) -> None:
    """Peers as they come and tuned ones apart."""
    facts, price = ([cell.strip() for cell in line.split("|")[1:-1]] for line in report.against(whole)[2:4])
    assert facts[:3] == ["facts at the end", "90%", "11%"]
    assert facts[3:6] == ["AgentFramework 100%", "0.90×", "0.10×"]
    assert price[3:6] == ["LangChain 1.00", "1.00×", "1.00×"]


def test_a_grid_is_kept_and_read_again(whole: grid.Grid, tmp_path: Path) -> None:
    """The report of a saved grid is that of the grid."""
    grid.save(whole, tmp_path / "grid.json")
    again = grid.load(tmp_path / "grid.json")
    made = [report.markdown(one, [], "x", Prices(), model.Traits()) for one in (whole, again)]
    assert made[0] == made[1]


def test_a_cell_in_a_process_of_its_own_says_what_was_wrong(tmp_path: Path) -> None:
    """The last line of its error is the reason."""
    run = grid.in_own_process([])
    with pytest.raises(RuntimeError, match="KeyError"):
        run(grid.Cell("nobody", "chat", 0))


def test_the_command_prints_one_cell(capsys: Any, tmp_path: Path) -> None:
    """With any recording and any settings of this module."""
    short = tmp_path / "short.jsonl"
    lines = scenarios.RECORDING.read_text("utf-8").splitlines()[:40]
    short.write_text("\n".join(lines), "utf-8")
    started = time.process_time()
    cell = json.dumps([{"keep_recent": 4}, "airline-480k", 3])
    assert command.main(["--recording", str(short), "--cell", cell]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["requests"], told["seed"]) == (4 * sum('"role": "assistant"' in line for line in lines), 3)
    assert 0 < told["cpu_mean"] * told["requests"] / 1000 < time.process_time() - started
