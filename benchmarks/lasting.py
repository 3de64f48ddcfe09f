"""`python -m benchmarks.lasting`: which of the user's sentences does a request hold, many compactions later?

The sessions of `benchmarks.cuts` are joined into one, in the order of their names. Sentences are the user's own, as
there, without those that a second row repeats. Each is looked for in the request right after the 1st, 5th, 10th and
50th compaction behind it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from benchmarks.cuts import fold, sentences_of
from benchmarks.field import SUMMARISERS
from benchmarks.peers import EVERYONE, FIRST
from benchmarks.prospective import WINDOWS
from benchmarks.real import half
from benchmarks.real.checkpoints import SET, load
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import shown
from benchmarks.sessions import Session
from benchmarks.tokens import Row, count, measure, said

_TIMES = (1, 5, 10, 50)
_EACH = [name for at in _TIMES for name in (f"sentences {at}", f"held {at}")]
COLUMNS = ("window", "summariser", "contestant", "compactions", *_EACH)


class Watch:
    """Looks for each sentence in the requests after certain compactions behind it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.found, self.compactions = Counter[str](), 0
        texts = "\n".join(fold(said(row)) for row in rows)
        told = [(at, one) for at, row in enumerate(rows) for one in sentences_of([row])]
        self._left = [(at, fold(one)) for at, one in told if texts.count(fold(one)) == 1]
        self._told: list[tuple[int, str]] = []
        """Sentences that were fed, each with the number of compactions before it."""
        self._before: Sequence[Row] = ()

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        before, self._before = self._before, list(view)
        while self._left and self._left[0][0] < fed:
            self._told.append((self.compactions, self._left.pop(0)[1]))
        if not is_compacted(before, view):
            return
        self.compactions += 1
        text = fold(shown(view))
        for first, sentence in self._told:
            if (age := self.compactions - first) in _TIMES:
                self.found.update({f"sentences {age}": 1, f"held {age}": sentence in text})


def is_compacted(before: Sequence[Row], view: Sequence[Row]) -> bool:
    """Returns True if a view does not continue the one before and has fewer tokens."""
    continued = [said(row) for row in view[: len(before)]] == [said(row) for row in before]
    return not continued and sum(measure(row, count) for row in view) < sum(measure(row, count) for row in before)


def cell(window: str, summariser: str, contestant: str, sealed: bool = False) -> Figures:
    """Plays one contestant in the joined sessions of one half."""
    rows = tuple(row for path in half(SET, sealed) for row in load(path, sealed).session.rows)
    watch = Watch(rows)
    session = Session(name="joined", rows=rows, budget=WINDOWS[window])
    play(EVERYONE[contestant], session, SUMMARISERS[summariser], look=watch)
    told = {"window": window, "summariser": summariser, "contestant": contestant}
    return {**told, "compactions": watch.compactions, **watch.found}


def measured(
    windows: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int, sealed: bool
) -> list[Figures]:
    wanted = [(window, how, who, sealed) for window in windows for how in summarisers for who in only]
    return run_all(cell, wanted, jobs, seconds=3_600, sealed=sealed)


if __name__ == "__main__":
    choices = {
        "windows": (WINDOWS, ["40k"]),
        "summarisers": (SUMMARISERS, ["extracts"]),
        "only": (EVERYONE, FIRST),
    }
    sys.exit(command("lasting", __doc__, choices, measured, COLUMNS, halves=True))
