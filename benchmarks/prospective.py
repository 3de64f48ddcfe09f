"""`python -m benchmarks.prospective`: does a view still hold what the agent's next call needs?

Each identifier in a short argument of a call that was last shown in a row which no longer stands verbatim in the view
is one event. It is held where it stands in the view that this request got. *Far* events are those that were last shown
more than 18,000 tokens ago, the same ones for every contestant. The newest rows of the same size are what no summary at
all would hold.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from benchmarks.field import SUMMARISERS
from benchmarks.peers import EVERYONE, FIRST
from benchmarks.prices import DOLLARS, dollars
from benchmarks.real.coding import load_all
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import newest, shown
from benchmarks.sessions import Session
from benchmarks.tokens import Row, calls_of, count, measure, said
from benchmarks.words import NAME, PATH, identifiers, places

FAR = 18_000
"""Tokens."""
_SHORT = 300
"""Characters of an argument."""
COLUMNS = (
    *("summariser", "contestant", "sessions", "events", "held", "held by tail", "paths", "paths held", "names"),
    *("names held", "far", "far held", *DOLLARS),
)


class Watch:
    """Looks at every request of a session and counts events."""

    def __init__(self, session: Session) -> None:
        self.found = Counter[str]()
        self._rows = session.rows
        self._texts = [said(row) for row in session.rows]
        self._before = list(accumulate((measure(row, count) for row in session.rows), initial=0))

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        if fed == len(self._rows):
            return
        used = {one: kind for text in _asked(self._rows[fed]) for one, kind in identifiers(text).items()}
        verbatim = {said(row) for row in view}
        text, tail = shown(view), ""
        for value, kind in used.items():
            at = next((at for at in range(fed - 1, -1, -1) if value in self._texts[at]), None)
            if at is None:
                continue
            held = bool(places(text, value))
            if self._before[fed] - self._before[at] > FAR:
                self.found.update({"far": 1, "far held": held})
            if self._texts[at] not in verbatim:
                size = sum(measure(row, count) for row in view)
                tail = tail or shown(newest(self._rows[:fed], size)) or " "
                self._add(kind, held)
                self.found["held by tail"] += bool(places(tail, value))

    def _add(self, kind: str, held: bool) -> None:
        self.found.update({"events": 1, "held": held})
        for name, title in ((PATH, "paths"), (NAME, "names")):
            self.found.update({title: kind == name, f"{title} held": kind == name and held})


def _asked(row: Row) -> Iterator[str]:
    """The short arguments of a row's calls; in long ones an agent writes what it makes up, such as a file."""
    left = [call["arguments"] for call in calls_of(row)]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and len(value) <= _SHORT:
            yield value


def cell(number: int, summariser: str, contestant: str) -> Figures:
    """One contestant in one session."""
    session = load_all()[number]
    watch = Watch(session)
    result = play(EVERYONE[contestant], session, SUMMARISERS[summariser], look=watch)
    found = {**watch.found, **dollars(result)}
    return {"session": session.name, "summariser": summariser, "contestant": contestant, **found}


def measured(summarisers: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """The sums over all sessions, then the cells that are missing."""
    sessions = range(len(load_all()))
    wanted = [(number, how, who) for how in summarisers for who in only for number in sessions]
    sums: dict[tuple[str, str], Counter[str]] = {}
    found = run_all(cell, wanted, jobs)
    for one in found:
        if "missing" not in one:
            told = sums.setdefault((one["summariser"], one["contestant"]), Counter())
            told.update({"sessions": 1, **{key: one[key] for key in COLUMNS[3:] if key in one}})
    lines = [{"summariser": how, "contestant": who, **told} for (how, who), told in sums.items()]
    return [*lines, *(one for one in found if "missing" in one)]


if __name__ == "__main__":
    choices = {"summarisers": (SUMMARISERS, ["extracts"]), "only": (EVERYONE, FIRST)}
    sys.exit(command("prospective", __doc__, choices, measured, COLUMNS))
