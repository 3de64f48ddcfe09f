"""`python -m benchmarks.prospective`: does a view still hold what the agent's next call needs?

An *event* is an identifier in a short argument of a call, if the row that last showed it is no longer verbatim in the
view. It is *held* if this request's view shows it; *bare* also counts a path without its first "./". *control* shows
what room does without selection: of the identifiers that the same row was the last to show and no later call names,
the share in the view. *tail* counts the events that the newest rows of the view's size hold, without any summary.
*written* are tokens of rows that the session does not have.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean

from benchmarks.field import SUMMARISERS
from benchmarks.peers import BEST, EVERYONE
from benchmarks.prices import DOLLARS, dollars
from benchmarks.real.coding import load_all
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import newest, shown
from benchmarks.sessions import Session
from benchmarks.tokens import Row, arguments_of, calls_of, count, measure, said
from benchmarks.words import identifiers, places

SHORT = 300
"""Characters of an argument."""
_LEAST = 0.45
"""Sessions below this share of the window are not played: by default no contestant summarises there."""
WINDOWS = {"40k": 40_000, "200k": 200_000}
COUNTED = ("events", "held", "bare", "tail", *DOLLARS)
MEANS = ("control", "view", "written")
COLUMNS = ("set", "window", "summariser", "contestant", "sessions", "played", *COUNTED[:4], *MEANS, *COUNTED[4:])


class Watch:
    """Counts the events of every request of a session."""

    def __init__(self, session: Session) -> None:
        self.found = Counter[str]()
        self.each: dict[str, list[float]] = {name: [] for name in MEANS}
        """A figure for each event."""
        self._rows = session.rows
        self._texts = texts = [said(row) for row in session.rows]
        self._showing = cache(lambda value: [at for at, text in enumerate(texts) if value in text])
        calls = ["\n".join(map(arguments_of, calls_of(row))) for row in session.rows]
        self._named = cache(lambda value: max((at for at, text in enumerate(calls) if value in text), default=-1))

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        asked = _asked(self._rows[fed]) if fed < len(self._rows) else ()
        used = {one for text in asked for one in identifiers(text)}
        if not used:
            return
        text, verbatim = shown(view), {said(row) for row in view}
        for value in used:
            at = self._last(value, fed)
            if at < 0:
                continue
            held = bool(places(text, value))
            bare = held or bool(places(text, value.removeprefix("./")))
            if self._texts[at] not in verbatim:
                self.found.update({"events": 1, "held": held, "bare": bare})
                self._compare(fed, view, at, value)

    def _last(self, value: str, fed: int) -> int:
        """Returns the newest row before the request that shows a value, or -1."""
        return max((at for at in self._showing(value) if at < fed), default=-1)

    def _compare(self, fed: int, view: Sequence[Row], at: int, value: str) -> None:
        """Counts what an event is compared with: the tail, sizes, and the control."""
        size = sum(measure(row, count) for row in view)
        self.found["tail"] += bool(places(shown(newest(self._rows[:fed], size)), value))
        self.each["view"].append(size)
        self.each["written"].append(sum(measure(row, count) for row in view if said(row) not in self._texts))
        others = [one for one in identifiers(self._texts[at]) if self._last(one, fed) == at and self._named(one) < fed]
        if others:
            self.each["control"].append(fmean(bool(places(shown(view), one)) for one in others))


def _asked(row: Row) -> Iterator[str]:
    """Yields the short arguments of a row's calls. Long ones hold what the agent made up, such as a file."""
    left = [call["arguments"] for call in calls_of(row)]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and len(value) <= SHORT:
            yield value


def cell(number: int, window: str, summariser: str, contestant: str, sealed: bool = False) -> Figures:
    """Plays one contestant in one session."""
    session = replace(load_all(sealed)[number], budget=WINDOWS[window])
    watch = Watch(session)
    result = play(EVERYONE[contestant], session, SUMMARISERS[summariser], look=watch)
    told = {"set": _set_of(session), "window": window, "summariser": summariser, "contestant": contestant}
    return {**told, **watch.found, **watch.each, **dollars(result)}


def _set_of(session: Session) -> str:
    return session.name.partition("/")[0]


def summed(found: Sequence[Figures], sessions: Mapping[str, int]) -> list[Figures]:
    """Returns the figures of each contestant over the sessions of each set, then the missing cells."""
    cells: dict[tuple[str, ...], list[Figures]] = {}
    for one in found:
        if "missing" not in one:
            cells.setdefault(tuple(one[name] for name in COLUMNS[:4]), []).append(one)
    lines = []
    for key, played in cells.items():
        told = {**dict(zip(COLUMNS[:4], key, strict=True)), "sessions": sessions[key[0]], "played": len(played)}
        told |= {name: sum(one.get(name, 0) for one in played) for name in COUNTED}
        each = {name: [value for one in played for value in one[name]] for name in MEANS}
        lines.append({**told, **{name: fmean(values) for name, values in each.items() if values}})
    return [*lines, *(one for one in found if "missing" in one)]


def measured(
    windows: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int, sealed: bool
) -> list[Figures]:
    """Returns the sums over all sessions."""
    sessions = load_all(sealed)
    sizes = [sum(measure(row, count) for row in session.rows) for session in sessions]
    wanted = [
        (number, window, how, who, sealed)
        for window in windows
        for how in summarisers
        for who in only
        for number, size in enumerate(sizes)
        if size > _LEAST * WINDOWS[window]
    ]
    return summed(run_all(cell, wanted, jobs, sealed=sealed), Counter(map(_set_of, sessions)))


if __name__ == "__main__":
    choices = {
        "windows": (WINDOWS, list(WINDOWS)),
        "summarisers": (SUMMARISERS, ["extracts"]),
        "only": (EVERYONE, ["Ours", "OursVerbatim", *BEST]),
    }
    sys.exit(command("prospective", __doc__, choices, measured, COLUMNS, halves=True))
