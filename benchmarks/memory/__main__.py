"""What a long memory costs and keeps: sessions of millions of tokens, resuming, planted facts, waiting.

`python -m benchmarks.memory` measures all four, `python -m benchmarks.memory lengths resume facts waiting` the ones
named. The recorded airline session is repeated with other ids and words, so that no summary serves two repetitions.
Times depend on the machine and on what else it does; counts, sizes and shares do not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from datetime import date

from rich.console import Console

from benchmarks.memory.facts import show_facts
from benchmarks.memory.lengths import show_lengths
from benchmarks.memory.resuming import show_resumes
from benchmarks.memory.waiting import show_waiting


def main() -> int:
    """Print the tables; exit 1 if a limit is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="lengths, resume, facts, waiting; default: all")
    parser.add_argument("--tokens", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--copies", type=int, default=4, help="of the recording that the facts are planted in")
    parser.add_argument("--facts", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=NUMBER", help="settings, for the facts")
    parser.add_argument("--turn", type=float, default=0.005, help="seconds of one turn, for the waiting")
    parser.add_argument("--call", type=float, default=0.1, help="seconds of one summary call")
    options = parser.parse_args()
    settings = {key: json.loads(value) for key, _, value in (item.partition("=") for item in options.set)}
    console = Console(width=None if sys.stdout.isatty() else 140)
    shows: dict[str, Callable[[], bool]] = {
        "lengths": lambda: show_lengths(console, options.tokens),
        "resume": lambda: show_resumes(console, options.rows),
        "facts": lambda: show_facts(console, options.copies, options.facts, options.seeds, settings),
        "waiting": lambda: show_waiting(console, options.turn, options.call),
    }
    if unknown := set(options.parts) - set(shows):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(shows)}")
    console.print(f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    met = [(part, shows[part]()) for part in options.parts or shows]
    missed = [part for part, good in met if not good]
    console.print(f"Not met: {', '.join(missed)}" if missed else "Every limit is met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
