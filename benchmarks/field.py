"""`python -m benchmarks.field`: all contestants on the same sessions, in virtual time, with scripted summaries.

Without options, all contestants play the recorded session with planted facts at a window of 40,000 tokens, and then
shorter ones: a window of 16,000, an agent that reads large files, invoices that a user typed, a summariser that is
down.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.peers import EVERYONE, OURS, PEERS
from benchmarks.prices import DOLLARS
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session, field, invoices, reader, recorded
from benchmarks.summarisers import Down, Extracting, Keeping, KeepingLess, Naming, Summariser

SESSIONS: Mapping[str, Callable[[], Session]] = {
    **{f"field-{size}k": partial(field, size * 1_000) for size in (8, 16, 40, 200)},
    "airline": lambda: Session(name="airline", rows=tuple(recorded())),
    "file-reader": reader,
    "invoices": invoices,
}
SUMMARISERS: Mapping[str, type[Summariser]] = {
    "keeps-95": Keeping,
    "keeps-80": KeepingLess,
    "extracts": Extracting,
    "names": Naming,
    "down": Down,
}
WHOLE = [
    ("field-40k", "keeps-95"),
    ("field-16k", "keeps-95"),
    ("file-reader", "keeps-95"),
    ("invoices", "extracts"),
    ("field-8k", "down"),
]
COLUMNS = (
    *("session", "summariser", "contestant", "facts", *DOLLARS, *(f"{name}_per_1000" for name in DOLLARS)),
    *(*(f"{name}_times" for name in DOLLARS), "waiting", "worst_wait", "cpu_mean", "cpu_p99", "view_mean", "cached"),
    *("breaks", "calls", "read", "wrote", "lost", "over_budget", "broken", "refused"),
)
HALF = 0.5
"""Prices are compared from this share of the facts on: a view that holds next to nothing is always cheap."""


def cell(session: str, summariser: str, contestant: str) -> Figures:
    """Plays one contestant in one session."""
    played = SESSIONS[session]()
    result = play(EVERYONE[contestant], played, SUMMARISERS[summariser])
    return {**scores(played, result), "session": session, "summariser": summariser, "versions": result.versions}


def measured(sessions: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """Plays all cells; if no sessions are named, those of `WHOLE`."""
    pairs = [(one, how) for one in sessions for how in summarisers] or WHOLE
    found = run_all(cell, [(*pair, name) for pair in pairs for name in only], jobs)
    for session, summariser in pairs:
        compare([one for one in found if (one.get("session"), one.get("summariser")) == (session, summariser)])
    return found


def compare(found: Sequence[Figures]) -> None:
    """Adds dollars as a multiple of those of the cheapest other library that keeps half of the facts."""
    others = {one.__name__ for one in PEERS}
    fair = [one for one in found if one["contestant"] in others and one.get("facts", 0) >= HALF and not one["lost"]]
    for one in found if fair else ():
        one.update({f"{name}_times": one[name] / min(other[name] for other in fair) for name in DOLLARS})


if __name__ == "__main__":
    choices = {
        "sessions": (SESSIONS, ()),
        "summarisers": (SUMMARISERS, ["keeps-95"]),
        "only": (EVERYONE, [one.__name__ for one in (*OURS, *PEERS)]),
    }
    sys.exit(command("field", __doc__, choices, measured, COLUMNS))
