"""`python -m benchmarks.speed [part …]`: measures the bars of speed and memory, and prints one table.

Parts:
  requests  sessions of three windows each: a request's time, add_message, blocks of the event loop
  import    rows that come at once, without a provider: the first request, and blocks meanwhile
  resume    the same rows again, with a store that knows them
  large     rows up to 50 MB, 20 MB at once, 10,000 parallel calls, 200,000 rows: blocks, first request, calls
  memory    a manager's bytes over those of its rows
  startup   the import of the package beside amplifier_core

Times are the smaller of clock and CPU, less garbage collections, so that other work on the machine counts little.
Every part runs in a process of its own; at its time limit it prints how far it got. Exit code 1: a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from rich.console import Console

from benchmarks.speed import large
from benchmarks.speed.figures import Figure, print_table
from benchmarks.speed.footprint import Memory, startup
from benchmarks.speed.imports import Import, Resume
from benchmarks.speed.limit import Part, run_apart
from benchmarks.speed.sessions import FILLS, LATE, Session

PARTS = ("requests", "import", "resume", "large", "memory", "startup")
WINDOWS = (40_000, 200_000, 1_000_000)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line, with what `--quick` stands for filled in."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help="; ".join(PARTS))
    parser.add_argument("--window", type=int, nargs="+", help="tokens of the windows of `requests`")
    parser.add_argument("--variant", choices=tuple(LATE), nargs="+", help="of `requests`")
    parser.add_argument("--fills", type=float, default=FILLS, help="times that a session fills its window")
    parser.add_argument("--rows", type=int, help="of `import` and `resume`")
    parser.add_argument("--large", nargs="+", choices=large.KINDS, help="of `large`: what is large")
    parser.add_argument("--memory-rows", type=int, help="of `memory`")
    parser.add_argument(
        "--limit", type=float, help="seconds of each part (1M windows twice, rows at once one and a half times that)"
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes and limits; below a minute")
    parser.add_argument("--where", action="store_true", help="sample the stack of long blocks (disturbs a little)")
    parser.add_argument("--profile", action="store_true", help="cProfile; the figures are those of a profiled run")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    quick = options.quick
    options.parts = options.parts or list(PARTS)
    options.window = options.window or list(WINDOWS[:2] if quick else WINDOWS)
    options.variant = options.variant or (["in-time", "above"] if quick else list(LATE))
    options.rows = options.rows or (10_000 if quick else 100_000)
    options.memory_rows = options.memory_rows or (2_000 if quick else 10_000)
    options.limit = options.limit or (4.5 if quick else 40.0)
    return options


def parts_of(options: argparse.Namespace) -> Iterator[tuple[Part, float]]:
    """What is measured in processes of their own, with seconds each may take."""
    if "requests" in options.parts:
        for window in options.window:
            for variant in options.variant:
                seconds = options.limit * (2 if window > WINDOWS[1] else 1)
                yield Session(window, variant, options.where, options.fills), seconds
    if "import" in options.parts:
        for by in ("set_messages",) if options.quick else ("set_messages", "add_message"):
            whole = not options.profile
            yield Import(options.rows, by, samples=options.where, stepwise=whole), options.limit * 1.5
    if "resume" in options.parts:
        yield Resume(options.rows, options.where), options.limit * 1.5
    if "large" in options.parts:
        for case in large.cases(options.quick, options.where):
            if options.large is None or case.kind in options.large:
                yield case, options.limit * case.share
    if "memory" in options.parts:
        yield Memory(options.memory_rows), options.limit


def main() -> int:
    """Measure, print; 1 when a bar is missed."""
    options = options_of()
    console = Console(width=None if sys.stdout.isatty() else 150)
    started = time.perf_counter()
    found: list[Figure] = []
    for part, seconds in parts_of(options):
        print(f"{part.title} …", file=sys.stderr, flush=True)
        found += run_apart(part, seconds, options.profile)
    if "startup" in options.parts:
        found += startup(3 if options.quick else 5)
    print_table(console, f"Speed and memory ({time.perf_counter() - started:.0f} s)", found)
    return 1 if any(figure.is_over for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
