"""`python -m benchmarks.real.conversations`: real conversations with gold answers, summarised by extracted sentences.

The data are fetched by `python -m benchmarks.real.fetch` and never shipped, because they have no free licence.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

from benchmarks.peers import EVERYONE
from benchmarks.prices import DOLLARS
from benchmarks.real import beam, locomo, pi, recordings
from benchmarks.real.recall import recalled
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session
from benchmarks.summarisers import Extracting

SETS: Mapping[str, Callable[[], list[Session]]] = {
    "BEAM-100K": partial(beam.load_all, "100K"),
    "LoCoMo": locomo.load_all,
    "airline": recordings.load_all,
    "pi": pi.load_all,
    "BEAM-500K": partial(beam.load_all, "500K"),
}
FIRST = ("Ours", "PydanticAIWhole", "LangChainWhole")
"""Ours, the peers that hold most in the field's sessions, and no summaries at all."""
COLUMNS = (
    *("set", "contestant", "chats", "asked", "gold", "near"),
    *("instructions_asked", "instructions", "recalls", "recall_any", "recall_gold_asked"),
    *("recall_gold", "ids", "ids_of_session", *DOLLARS, "waiting", "view_last", "lost", "over_budget", "broken"),
)
_MEANS = ("waiting", "view_last", "cached")
_SUMS = [name for name in COLUMNS if name not in ("set", "contestant", "chats", *_MEANS)] + ["tokens"]


def cell(name: str, number: int, contestant: str) -> Figures:
    """One contestant in one chat."""
    session = SETS[name]()[number]
    found = scores(session, play(EVERYONE[contestant], session, Extracting))
    return {**found, **(recalled(session) if contestant == "Ours" else {}), "set": name}


def of_sets(found: Sequence[Figures]) -> list[Figures]:
    """The figures of each contestant over the chats of a set that it has played."""
    cells: dict[tuple[str, str], list[Figures]] = {}
    for one in found:
        if "missing" not in one:
            cells.setdefault((one["set"], one["contestant"]), []).append(one)
    lines = []
    for (name, contestant), played in cells.items():
        sums = {key: sum(one[key] for one in played) for key in _SUMS if any(key in one for one in played[:1])}
        means = {key: fmean(one[key] for one in played) for key in _MEANS}
        lines.append({"set": name, "contestant": contestant, "chats": len(played), **sums, **means})
    return lines


def measured(sets: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """All cells, then the missing ones.

    Raises:
        DataMissingError: a set is not fetched.
    """
    wanted = [(name, at, one) for name in sets for one in only for at in range(len(SETS[name]()))]
    found = run_all(cell, wanted, jobs)
    return [*of_sets(found), *(one for one in found if "missing" in one)]


if __name__ == "__main__":
    choices = {"sets": (SETS, list(SETS)), "only": (EVERYONE, FIRST)}
    sys.exit(command("real.conversations", __doc__, choices, measured, COLUMNS))
