"""The comparison on real conversations: plays what is not kept yet, and writes docs/benchmarks-real.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.field.contestants import entries
from benchmarks.field.model import Traits
from benchmarks.field.result import Prices
from benchmarks.real import pi, pictures, readme, recall
from benchmarks.real.chats import DATA, DataMissingError
from benchmarks.real.figures import Figures, figures
from benchmarks.real.report import Terms, markdown
from benchmarks.real.results import ROOT, Kept, Run, keys, run, workers
from benchmarks.real.sets import SETS, chats

PAGE = ROOT / "docs" / "benchmarks-real.md"
README = ROOT / "README.md"
WHOLE = "make bench-real"
FIRST = ("ours", "PydanticAIWhole", "LangChainWhole", "StrandsMost", "KeepLast")
"""Played before all others: this module, the peers that hold most in the field benchmark, and no summaries at all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and write the report; exit code 1 where data are missing."""
    options = _parser().parse_args(arguments)
    started, traits, prices = time.monotonic(), Traits(), Prices()
    try:
        sets = {name: chats(name)[: 1 if options.quick else None] for name in options.sets}
    except DataMissingError as error:
        print(error, file=sys.stderr)
        return 1
    wanted = keys(sets, _contestants(options))
    kept = Kept(options.results)
    given = {"at_once": options.at_once, "seconds": 0.0 if options.render else 60 * options.minutes}
    with workers(options.at_once) as pool:
        done = run(wanted, kept, pool, **given, traits=traits, prices=prices, say=_say)
    found = figures(sets, done.cells)
    _write(options.page, found, done, traits, prices, _command(options))
    if _command(options) == WHOLE and options.page == PAGE:
        README.write_text(readme.renewed(README.read_text("utf-8"), found), "utf-8")
    _say(f"{options.page} written in {time.monotonic() - started:.0f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"contestants: {', '.join(entries())}")
    parser.add_argument("--quick", action="store_true", help="the first chat of each set and five contestants")
    parser.add_argument("--minutes", type=float, default=26, help="after which no cell is begun (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--render", action="store_true", help="only write the report of the cells that are kept")
    parser.add_argument("--results", type=Path, default=DATA / "results", metavar="DIR", help="where cells are kept")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="the report")
    return parser


def _contestants(options: argparse.Namespace) -> list[str]:
    if options.only:
        return list(options.only)
    if options.quick:
        return list(FIRST)
    others = sorted(entries(), key=lambda name: entries()[name].kind == "ours")  # our further settings come last
    return list(dict.fromkeys([*FIRST, *others]))


def _command(options: argparse.Namespace) -> str:
    given = ["--quick"] if options.quick else []
    given += ["--only", *(f'"{name}"' if " " in name else name for name in options.only)] if options.only else []
    given += ["--sets", *options.sets] if list(options.sets) != list(SETS) else []
    return " ".join(["python -m benchmarks.real", *given]) if given else WHOLE


def _write(page: Path, found: Figures, done: Run, traits: Traits, prices: Prices, command: str) -> None:
    try:
        drawn = pictures.draw(found, page.parent / "benchmarks") if found.sets() else []
    except ImportError as error:
        _say(f"no pictures: {error}; `make bench-peers` installs what they need")
        drawn = []
    anchors = pi.anchors() if "pi" in found.sets() else {}
    terms = Terms(command, traits, prices, recall.LIMIT, anchors, done.missing, drawn)
    page.write_text(markdown(found, terms), "utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
