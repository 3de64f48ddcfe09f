"""The command line: the whole grid and its report, one cell of it, or the report of a grid that was saved."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from benchmarks.field import pictures
from benchmarks.field.cell import play
from benchmarks.field.contestants import entries, own
from benchmarks.field.grid import Grid, faults_table, in_own_process, load, run_grid, save
from benchmarks.field.model import Traits
from benchmarks.field.report import markdown
from benchmarks.field.result import Prices, Result
from benchmarks.field.scenarios import RECORDING, ROOT, scenarios

PAGE = ROOT / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report, or print one cell as JSON."""
    options = _parser().parse_args(arguments)
    # Contestants tell of every failure; the tables count them.
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _run(options)
    finally:
        logging.disable(before)


def _run(options: argparse.Namespace) -> int:
    traits = Traits(**{one.name: getattr(options, one.name) for one in fields(Traits) if hasattr(options, one.name)})
    prices = Prices(read=options.price_read, write=options.price_write, output=options.price_output)
    if options.cell:
        print(json.dumps(_cell(options, traits, prices).as_json()))
        return 0
    started = time.monotonic()
    grid = load(options.render) if options.render else _grid(options)
    if options.save:
        save(grid, options.save)
    drawn = _drawn(grid)
    PAGE.write_text(markdown(grid, drawn, "make bench-field", prices, traits), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} written in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.field", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], metavar="N")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"contestants: {', '.join(entries())}")
    parser.add_argument("--recording", type=Path, default=RECORDING, help="a message a line, as Amplifier stores them")
    parser.add_argument("--no-faults", action="store_true", help="leave the failing summariser out")
    parser.add_argument("--save", type=Path, metavar="FILE", help="also keep all results as JSON")
    parser.add_argument("--render", type=Path, metavar="FILE", help="only write the report of such a file")
    parser.add_argument("--cell", metavar="JSON", help="[contestant or settings, scenario, seed]: print its results")
    model = parser.add_argument_group("the stand-in")
    for name in ("keep", "share"):
        model.add_argument(f"--{name}", type=float, default=getattr(Traits(), name))
    model.add_argument("--max-output", type=int, default=Traits().max_output)
    ratios = parser.add_argument_group("prices, in uncached input tokens")
    for one in fields(Prices):
        ratios.add_argument(f"--price-{one.name}", type=float, default=one.default)
    return parser


def _cell(options: argparse.Namespace, traits: Traits, prices: Prices) -> Result:
    who, scenario, seed = json.loads(options.cell)
    entry = own(json.dumps(who), who) if isinstance(who, dict) else entries()[who]
    return play(entry, scenarios(options.recording)[scenario], seed, traits, prices)


def _grid(options: argparse.Namespace) -> Grid:
    given = [f"--recording={options.recording.resolve()}", f"--keep={options.keep}", f"--share={options.share}"]
    given += [f"--max-output={options.max_output}"]
    given += [f"--price-{one.name}={getattr(options, f'price_{one.name}')}" for one in fields(Prices)]
    run, names = in_own_process(given), options.only or list(entries())
    grid = run_grid(options.seeds, run, contestants=names, say=lambda text: print(text, file=sys.stderr))
    if not options.no_faults:
        grid.faults = faults_table()
    return grid


def _drawn(grid: Grid) -> list[str]:
    try:
        return pictures.draw(grid, PAGE.parent / "benchmarks")
    except ImportError as error:
        print(f"no pictures: {error}; `make bench-peers` installs what they need", file=sys.stderr)
        return []


if __name__ == "__main__":
    sys.exit(main())
