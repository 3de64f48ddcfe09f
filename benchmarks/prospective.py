"""`python -m benchmarks.prospective`: does a view still hold what the agent's next call needs?

Each identifier in a short argument of a call that was last shown in a row which no longer stands verbatim in the view
is one event. It is held where it stands in the view that this request got. *Far* events are those that were last shown
more than 18,000 tokens ago, the same ones for every contestant.

Two figures say how much of that is room, and how much is selection. *Control* is the share of the identifiers in the
same row that no later call names and that stand in the same view all the same. *Tail* is what the newest rows of the
view's size hold, with no summary at all. *View* and *written* are tokens at an event: of the view, and of those of its
rows that no row of the session says.

Pi recorded its own summaries at two cuts of a session. Events there are the same for pi and for ours: they were last
shown before the first row that pi kept.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from statistics import fmean

from benchmarks.field import SUMMARISERS
from benchmarks.peers import BEST, EVERYONE
from benchmarks.prices import DOLLARS, dollars
from benchmarks.real.coding import Cut, cuts, load, load_all
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import newest, shown
from benchmarks.sessions import Session
from benchmarks.summarisers import Extracting
from benchmarks.tokens import Row, arguments_of, calls_of, count, measure, said
from benchmarks.words import NAME, PATH, identifiers, places

FAR = 18_000
"""Tokens."""
_SHORT = 300
"""Characters of an argument."""
_LEAST = 0.6
"""No contestant summarises in a session that is smaller than this share of the window."""
WINDOWS = {"40k": 40_000, "200k": 200_000}
COUNTED = ("events", "held", "tail", "paths", "paths held", "names", "names held", "far", "far held", *DOLLARS)
MEANS = ("control", "view", "written")
COLUMNS = ("window", "summariser", "contestant", "sessions", "played", *COUNTED[:3], *MEANS, *COUNTED[3:])


class Watch:
    """Looks at every request of a session and counts events."""

    def __init__(self, session: Session, cuts: Sequence[Cut] = ()) -> None:
        self.found = Counter[str]()
        self.each: dict[str, list[float]] = {name: [] for name in MEANS}
        """Of each event."""
        self._rows, self._cuts = session.rows, cuts
        self._texts = [said(row) for row in session.rows]
        self._before = list(accumulate((measure(row, count) for row in session.rows), initial=0))
        calls = ["\n".join(map(arguments_of, calls_of(row))) for row in session.rows]
        self._named = cache(lambda value: max((at for at, text in enumerate(calls) if value in text), default=-1))

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        asked = _asked(self._rows[fed]) if fed < len(self._rows) else ()
        used = {one: kind for text in asked for one, kind in identifiers(text).items()}
        if not used or any(fed < cut.at for cut in self._cuts[:1]):
            return
        text, verbatim = shown(view), {said(row) for row in view}
        left: list[tuple[int, str]] = []
        for value, kind in used.items():
            at = next((at for at in range(fed - 1, -1, -1) if value in self._texts[at]), None)
            if at is None:
                continue
            held = bool(places(text, value))
            if self._before[fed] - self._before[at] > FAR:
                self.found.update({"far": 1, "far held": held})
            if self._is_gone(at, fed, verbatim):
                self._add(kind, held)
                left.append((at, value))
        if left:
            self._compare(fed, view, left)

    def _is_gone(self, at: int, fed: int, verbatim: set[str]) -> bool:
        if not self._cuts:
            return self._texts[at] not in verbatim
        return any(at < cut.kept for cut in self._cuts if cut.at <= fed)

    def _add(self, kind: str, held: bool) -> None:
        self.found.update({"events": 1, "held": held})
        for name, title in ((PATH, "paths"), (NAME, "names")):
            self.found.update({title: kind == name, f"{title} held": kind == name and held})

    def _compare(self, fed: int, view: Sequence[Row], left: Sequence[tuple[int, str]]) -> None:
        """What stands beside the events of one request: the control, the tail, and sizes."""
        texts = set(self._texts)
        sizes = [(measure(row, count), said(row) in texts) for row in view]
        size = sum(tokens for tokens, _ in sizes)
        text, tail = shown(view), shown(newest(self._rows[:fed], size))
        for at, value in left:
            self.found["tail"] += bool(places(tail, value))
            self.each["view"].append(size)
            self.each["written"].append(sum(tokens for tokens, is_said in sizes if not is_said))
            others = [one for one in identifiers(self._texts[at]) if self._named(one) < fed]
            if others:
                self.each["control"].append(fmean(bool(places(text, one)) for one in others))


def _asked(row: Row) -> Iterator[str]:
    """The short arguments of a row's calls; in long ones an agent writes what it makes up, such as a file."""
    left = [call["arguments"] for call in calls_of(row)]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and len(value) <= _SHORT:
            yield value


def cell(number: int, window: str, summariser: str, contestant: str, sealed: bool = False) -> Figures:
    """One contestant in one session."""
    session = replace(load(number, sealed), budget=WINDOWS[window])
    watch = Watch(session)
    result = play(EVERYONE[contestant], session, SUMMARISERS[summariser], look=watch)
    told = {"window": window, "summariser": summariser, "contestant": contestant}
    return {**told, **watch.found, **watch.each, **dollars(result)}


def at_cuts(contestant: str, window: str) -> Figures:
    """The same events for pi and for ours, in the session that pi summarised."""
    session, made = cuts()
    watch = Watch(session, made)
    if contestant == "pi":
        for cut, end in zip(made, [*(cut.at for cut in made[1:]), len(session.rows)], strict=True):
            summary = {"role": "user", "content": cut.summary}
            for fed in range(cut.at, end):
                watch(fed, [summary, *session.rows[cut.kept : fed]])
    else:
        play(EVERYONE[contestant], replace(session, budget=WINDOWS[window]), Extracting, look=watch)
    return {"window": window, "summariser": "at pi's cuts", "contestant": contestant, **watch.found, **watch.each}


def summed(found: Sequence[Figures], sessions: int) -> list[Figures]:
    """The sums over the sessions that each contestant has played, and means over events."""
    cells: dict[tuple[str, ...], list[Figures]] = {}
    for one in found:
        cells.setdefault((one["window"], one["summariser"], one["contestant"]), []).append(one)
    lines = []
    for key, played in cells.items():
        told = {**dict(zip(COLUMNS[:3], key, strict=True)), "sessions": sessions, "played": len(played)}
        told |= {name: sum(one.get(name, 0) for one in played) for name in COUNTED}
        each = {name: [value for one in played for value in one[name]] for name in MEANS}
        lines.append(told | {name: fmean(values) for name, values in each.items() if values})
    return lines


def measured(
    windows: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int, sealed: bool
) -> list[Figures]:
    """The sums over all sessions, then pi's cuts, then the cells that are missing.

    Raises:
        DataMissingError: a session is not fetched.
    """
    sizes = [sum(measure(row, count) for row in session.rows) for session in load_all(sealed)]
    wanted = [
        (number, window, how, who, sealed)
        for window in windows
        for how in summarisers
        for who in only
        for number, size in enumerate(sizes)
        if size > _LEAST * WINDOWS[window]
    ]
    found = run_all(cell, wanted, jobs, sealed=sealed)
    pi = [] if sealed else run_all(at_cuts, [("pi", "its own"), *(("Ours", window) for window in windows)], jobs)
    lines = [
        summed([one for one in some if "missing" not in one], count) for some, count in ((found, len(sizes)), (pi, 1))
    ]
    return [*lines[0], *lines[1], *(one for one in [*found, *pi] if "missing" in one)]


if __name__ == "__main__":
    choices = {
        "windows": (WINDOWS, list(WINDOWS)),
        "summarisers": (SUMMARISERS, ["extracts", "names"]),
        "only": (EVERYONE, ["Ours", "OursVerbatim", *BEST]),
    }
    sys.exit(command("prospective", __doc__, choices, measured, COLUMNS, halves=True))
