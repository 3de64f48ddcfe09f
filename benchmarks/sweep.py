"""`python -m benchmarks.sweep`: what do earlier or later compactions, or less room for summaries, keep and cost?

`python -m benchmarks.prospective --only` takes the same contestants, with recorded coding sessions.
"""

from __future__ import annotations

import sys

from benchmarks import field
from benchmarks.peers import OURS, SWEPT
from benchmarks.prices import DOLLARS
from benchmarks.report import command

COLUMNS = ("session", "contestant", *DOLLARS, "breaks", "cached", "facts", "waiting", "view_mean", "over_budget")

if __name__ == "__main__":
    names = [one.__name__ for one in (*OURS, *SWEPT)]
    choices = {
        "sessions": (field.SESSIONS, ["field-16k", "field-40k", "field-200k"]),
        "summarisers": (field.SUMMARISERS, ["keeps-95"]),
        "only": (names, names),
    }
    sys.exit(command("sweep", __doc__, choices, field.measured, COLUMNS))
