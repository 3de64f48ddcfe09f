"""What a failing summariser does to this module and to its peers: `make bench-faults`.

The same recorded session is played to every contestant with a summariser that answers empty, raises, or answers as much
as it was shown. Facts are planted in user rows, and before every assistant row a view is asked for and measured: did
the turn survive, does the request fit, are calls and results still together, what is gone. A sound summariser, which
keeps every fact that it is shown, is the control: it shows that a contestant is set up as it is meant to be.

Exit code 1 when this module breaks; 0 whatever the peers do.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
import warnings
from collections.abc import Sequence
from datetime import date

from rich.console import Console

from benchmarks.faults.playing import run
from benchmarks.faults.report import markdown, show
from benchmarks.faults.summariser import BUDGET, ROWS
from benchmarks.peers import AS_THEY_COME, Contestant, Ours


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 when this module broke a promise."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the recording")
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens that a request may hold")
    parser.add_argument("--only-ours", action="store_true", help="leave the peers out")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args(arguments)
    # Peers and ours tell of every failure; the table counts them.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    contestants: tuple[type[Contestant], ...] = (Ours,) if options.only_ours else (Ours, *AS_THEY_COME)
    errors = Console(stderr=True)
    started = time.monotonic()
    report = asyncio.run(
        run(contestants, rows=options.rows, budget=options.budget, say=lambda text: errors.print(text, style="dim"))
    )
    errors.print(f"{time.monotonic() - started:.0f} s in all", style="dim")
    if options.markdown:
        print(f"{date.today().isoformat()}, `python -m benchmarks.faults --markdown`\n")
        print(markdown(report, options.budget))
    else:
        show(Console() if sys.stdout.isatty() else Console(width=160), report, options.budget)
    for text in report.broken:
        errors.print(f"{Ours.title} broke: {text}", style="red")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
