"""Runs the cells of the grid, each in a process of its own, two at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.field.contestants import FRUGAL, entries
from benchmarks.field.result import Result
from benchmarks.field.scenarios import ROOT, scenarios

MAIN = "airline-480k"
AT_ONCE = 2
SECONDS = 300
"""Real time after which a cell is given up."""
SLOW = 60
KEEPS = (0.9, 0.8)
COMPARED = ("ours", f"ours, {FRUGAL}")
"""Of this module's settings, those that are also measured with stand-ins that keep less; the first in every session."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One contestant in one session."""

    contestant: str
    scenario: str
    seed: int
    keep: float | None = None
    """Of the stand-in, where it is not what the command line says."""


@dataclass(slots=True)
class Grid:
    """All results, and what could not be run."""

    results: list[Result] = field(default_factory=list)
    forgetful: list[Result] = field(default_factory=list)
    """Results on the main session with stand-ins that keep less."""
    missing: dict[str, str] = field(default_factory=dict)
    """Contestant (and session) → why it was not run."""
    faults: str = ""
    """The table of `benchmarks.faults`, in Markdown."""

    def of(self, contestant: str, scenario: str = MAIN) -> list[Result]:
        """The results of all seeds."""
        return [one for one in self.results if (one.name, one.scenario) == (contestant, scenario)]

    def names(self, scenario: str = MAIN) -> list[str]:
        """Contestants with results in this session, in the order of the report."""
        return [name for name in entries() if self.of(name, scenario)]

    def peers(self) -> list[str]:
        """The other libraries among them."""
        return [name for name in self.names() if entries()[name].is_peer]

    def mean(self, contestant: str, column: str, scenario: str = MAIN) -> float:
        """Of a column, over the seeds."""
        return fmean(getattr(one, column) for one in self.of(contestant, scenario))

    def best_peers(self, total: int = 2) -> list[str]:
        """Peers with the most facts at the end; those that served every turn within the budget go first."""
        peers = self.peers()
        sound = [name for name in peers if not any(one.over_budget or one.lost_turns for one in self.of(name))]
        order = sorted(peers, key=lambda name: (name not in sound, -self.mean(name, "facts_end")))
        return order[:total]


Run = Callable[[Cell], Result]


def run_grid(
    seeds: Sequence[int],
    run: Run,
    *,
    contestants: Iterable[str],
    say: Callable[[str], None] = lambda text: None,
    at_once: int = AT_ONCE,
) -> Grid:
    """Everyone on the main session with every seed; ours and the two best peers on the others with the first one.

    Who takes more than `SLOW` seconds for one session is measured with the first seed alone.
    """
    grid = Grid()
    names = list(contestants)
    grid.results += _run_all(grid, [Cell(name, MAIN, seeds[0]) for name in names], run, say, at_once)
    quick = [name for name in names if grid.of(name) and grid.of(name)[0].seconds <= SLOW]
    grid.results += _run_all(grid, [Cell(name, MAIN, seed) for name in quick for seed in seeds[1:]], run, say, at_once)
    own, best = [name for name in names if name in COMPARED and grid.of(name)], grid.best_peers()
    less = [Cell(name, MAIN, seeds[0], keep) for keep in KEEPS for name in [*own, *best]]
    grid.forgetful += _run_all(grid, less, run, say, at_once)
    others = [name for name in scenarios() if name != MAIN]
    cells = [Cell(name, other, seeds[0]) for other in others for name in [*own[:1], *best]]
    grid.results += _run_all(grid, cells, run, say, at_once)
    return grid


def _run_all(grid: Grid, cells: Sequence[Cell], run: Run, say: Callable[[str], None], at_once: int) -> list[Result]:
    def one(cell: Cell) -> Result | str:
        try:
            return run(cell)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return str(error)

    done: list[Result] = []
    with ThreadPoolExecutor(at_once) as threads:
        for cell, result in zip(cells, threads.map(one, cells), strict=True):
            if isinstance(result, Result):
                done.append(result)
                say(f"{cell.contestant}, {cell.scenario}, seed {cell.seed}: {result.seconds:.0f} s")
            else:
                grid.missing[f"{cell.contestant}, {cell.scenario}"] = result
                say(f"{cell.contestant}, {cell.scenario}, seed {cell.seed}: not run: {result}")
    return done


def in_own_process(options: Sequence[str]) -> Run:
    """Runs a cell with these options of the command line, so that its CPU, memory and imports are its own."""

    def run(cell: Cell) -> Result:
        told = json.dumps([cell.contestant, cell.scenario, cell.seed])
        keep = [f"--keep={cell.keep}"] if cell.keep is not None else []
        command = [sys.executable, "-m", "benchmarks.field", *options, *keep, "--cell", told]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}")
        return Result(**json.loads(done.stdout))

    return run


def faults_table() -> str:
    """What `benchmarks.faults` prints, without its first line."""
    command = [sys.executable, "-m", "benchmarks.faults", "--markdown"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    return done.stdout.partition("\n")[2].strip() or f"not run: {done.stderr.strip().rpartition(chr(10))[2]}"


def save(grid: Grid, path: Path) -> None:
    """All of it as JSON."""
    told: dict[str, Any] = {
        "results": [one.as_json() for one in grid.results],
        "forgetful": [one.as_json() for one in grid.forgetful],
        "missing": grid.missing,
        "faults": grid.faults,
    }
    path.write_text(json.dumps(told), "utf-8")


def load(path: Path) -> Grid:
    """What `save` wrote."""
    told = json.loads(path.read_text("utf-8"))
    results, forgetful = ([Result(**one) for one in told[name]] for name in ("results", "forgetful"))
    return Grid(results, forgetful, told["missing"], told["faults"])
