"""`python -m benchmarks.field`: all contestants on the same sessions, in virtual time, with scripted summaries.

Without options, all contestants play the recorded session with planted facts at a window of 40,000 tokens, then at
one of 16,000, and at one of 8,000 with a summariser that is down.
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
from benchmarks.sessions import Session, field
from benchmarks.summarisers import Down, Extracting, Keeping, Summariser

SESSIONS: Mapping[str, Callable[[], Session]] = {
    **{f"field-{size}k": partial(field, size * 1_000) for size in (8, 16, 40, 200)},
}
SUMMARISERS: Mapping[str, type[Summariser]] = {
    "keeps-95": Keeping,
    "extracts": Extracting,
    "down": Down,
}
WHOLE = [
    ("field-40k", "keeps-95"),
    ("field-16k", "keeps-95"),
    ("field-8k", "down"),
]
COLUMNS = (
    *("session", "summariser", "contestant", "facts", *DOLLARS),
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
