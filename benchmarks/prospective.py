"""`python -m benchmarks.prospective`: does a view still hold what the agent's next call needs?

An *event* is an identifier in a short argument of a call, if the row that last showed it is no longer verbatim in the
view. It is *held* if this request's view shows it; *bare* also counts a path without its first "./". *far* identifiers
were last shown more than 18,000 tokens ago, and are the same for every contestant. *control* shows what room does
without selection: of the identifiers that the same row was the last to show and no later call names, the share in the
view. *tail* counts the events that the newest rows of the view's size hold, without any summary. *written* are tokens
of rows that the session does not have.

Pi recorded its own summaries at two cuts of a session. Events there were last shown before the first row that pi kept.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from statistics import fmean

from benchmarks.field import SUMMARISERS
from benchmarks.peers import BEST, EVERYONE
from benchmarks.prices import DOLLARS, dollars
from benchmarks.real.coding import Cut, cuts, load_all
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import newest, shown
from benchmarks.sessions import Session
from benchmarks.summarisers import Extracting
from benchmarks.tokens import Row, arguments_of, calls_of, count, measure, said
from benchmarks.words import identifiers, places

FAR = 18_000
"""Tokens."""
SHORT = 300
"""Characters of an argument."""
_LEAST = 0.45
"""Sessions below this share of the window are not played: by default no contestant summarises there."""
WINDOWS = {"40k": 40_000, "200k": 200_000}
COUNTED = ("events", "held", "bare", "tail", "paths", "paths held", "names", "names held", "far", "far held", *DOLLARS)
MEANS = ("control", "view", "written")
COLUMNS = ("set", "window", "summariser", "contestant", "sessions", "played", *COUNTED[:4], *MEANS, *COUNTED[4:])


class Watch:
    """Counts the events of every request of a session."""

    def __init__(self, session: Session, cuts: Sequence[Cut] = ()) -> None:
        self.found = Counter[str]()
        self.each: dict[str, list[float]] = {name: [] for name in MEANS}
        """A figure for each event."""
        self._rows, self._cuts = session.rows, cuts
        self._texts = texts = [said(row) for row in session.rows]
        self._showing = cache(lambda value: [at for at, text in enumerate(texts) if value in text])
        self._before = list(accumulate((measure(row, count) for row in session.rows), initial=0))
        calls = ["\n".join(map(arguments_of, calls_of(row))) for row in session.rows]
        self._named = cache(lambda value: max((at for at, text in enumerate(calls) if value in text), default=-1))

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        asked = _asked(self._rows[fed]) if fed < len(self._rows) else ()
        used = {one: kind for text in asked for one, kind in identifiers(text).items()}
        cut = next((cut for cut in reversed(self._cuts) if cut.at <= fed), None)
        if not used or (self._cuts and not cut):
            return
        text, verbatim = shown(view), {said(row) for row in view}
        for value, kind in used.items():
            at = self._last(value, fed)
            if at < 0:
                continue
            held = bool(places(text, value))
            bare = held or bool(places(text, value.removeprefix("./")))
            if self._before[fed] - self._before[at] > FAR:
                self.found.update({"far": 1, "far held": held})
            if at < cut.kept if cut else self._texts[at] not in verbatim:
                self.found.update({"events": 1, "held": held, "bare": bare, f"{kind}s": 1, f"{kind}s held": held})
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


def at_cuts(contestant: str, window: str) -> Figures:
    """Counts the same events for pi or for ours, in the session that pi summarised."""
    session, made = cuts()
    watch = Watch(session, made)
    if contestant == "pi":
        for fed in range(len(session.rows)):
            for cut in [cut for cut in made if cut.at <= fed][-1:]:
                watch(fed, [{"role": "user", "content": cut.summary}, *session.rows[cut.kept : fed]])
    else:
        play(EVERYONE[contestant], replace(session, budget=WINDOWS[window]), Extracting, look=watch)
    told = {"set": _set_of(session), "window": window, "summariser": "at pi's cuts", "contestant": contestant}
    return {**told, **watch.found, **watch.each}


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
    """Returns the sums over all sessions, then pi's cuts."""
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
    lines = summed(run_all(cell, wanted, jobs, sealed=sealed), Counter(map(_set_of, sessions)))
    of_pi = [] if sealed else [("pi", "its own"), *(("Ours", window) for window in windows)]
    return lines + summed(run_all(at_cuts, of_pi, jobs), {"pi-mono": 1})


if __name__ == "__main__":
    choices = {
        "windows": (WINDOWS, list(WINDOWS)),
        "summarisers": (SUMMARISERS, ["extracts", "names"]),
        "only": (EVERYONE, ["Ours", "OursVerbatim", *BEST]),
    }
    sys.exit(command("prospective", __doc__, choices, measured, COLUMNS, halves=True))
