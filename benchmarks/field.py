"""`python -m benchmarks.field`: everyone on the same sessions, in virtual time, with a stand-in for the summariser.

Without options, all contestants play the recorded session with planted facts at a window of 40,000 tokens, and then
shorter ones: a window of 16,000, an agent that reads large files, invoices that a user typed, a summariser that is
down.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.peers import EVERYONE
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session, field, invoices, reader, recorded
from benchmarks.summarisers import FAULTS, Extracting, Keeping, KeepingLess, Naming, Summariser

SESSIONS: Mapping[str, Callable[[], Session]] = {
    **{f"field-{size}k": partial(field, size * 1_000) for size in (8, 16, 40, 200)},
    **{f"field-{size}k-again": partial(field, size * 1_000, 1) for size in (8, 16, 40, 200)},
    "airline": lambda: Session(name="airline", rows=tuple(recorded())),
    "file-reader": reader,
    "invoices": invoices,
}
SUMMARISERS: Mapping[str, type[Summariser]] = {
    "keeps-95": Keeping,
    "keeps-80": KeepingLess,
    "extracts": Extracting,
    "names": Naming,
    **FAULTS,
}
WHOLE = [
    ("field-40k", "keeps-95"),
    ("field-16k", "keeps-95"),
    ("file-reader", "keeps-95"),
    ("invoices", "extracts"),
    ("field-8k", "down"),
]
COLUMNS = (
    *("session", "summariser", "contestant", "facts", "ids", "price", "cached", "waiting", "worst_wait", "view_mean"),
    *("cpu_mean", "cpu_p50", "cpu_p99", "calls", "read", "wrote", "lost", "over_budget", "broken", "refused"),
)


def cell(session: str, summariser: str, contestant: str) -> Figures:
    """One contestant in one session."""
    played = SESSIONS[session]()
    result = play(EVERYONE[contestant], played, SUMMARISERS[summariser])
    return {**scores(played, result), "session": session, "summariser": summariser, "versions": result.versions}


def measured(sessions: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """All cells; without sessions those of `WHOLE`."""
    pairs = [(one, how) for one in sessions for how in summarisers] or WHOLE
    return run_all(cell, [(*pair, name) for pair in pairs for name in only], jobs)


if __name__ == "__main__":
    choices = {
        "sessions": (SESSIONS, ()),
        "summarisers": (SUMMARISERS, ["keeps-95"]),
        "only": (EVERYONE, list(EVERYONE)),
    }
    sys.exit(command("field", __doc__, choices, measured, COLUMNS))
