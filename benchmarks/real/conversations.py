"""`python -m benchmarks.real.conversations`: real conversations with gold answers, summarised by extracted sentences.

The data are fetched by `python -m benchmarks.real.fetch` and never shipped, because they have no free licence.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.peers import EVERYONE, FIRST
from benchmarks.prices import DOLLARS
from benchmarks.real import beam, locomo, pi
from benchmarks.real.recall import recalled
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session
from benchmarks.summarisers import Extracting

SETS: Mapping[str, Callable[[], list[Session]]] = {
    "BEAM-100K": partial(beam.load_all, "100K"),
    "LoCoMo": locomo.load_all,
    "pi": pi.load_all,
    "BEAM-500K": partial(beam.load_all, "500K"),
}
SEALED = {"BEAM-500K": partial(beam.load_all, "500K", sealed=True)}
COLUMNS = (
    *("set", "contestant", "chats", "asked", "gold", "near"),
    *("recalls", "recall_any", "recall_gold_asked", "recall_gold"),
    *(*DOLLARS, "waiting", "view_last", "lost", "over_budget", "broken"),
)
_MEANS = ("waiting", "view_last", "cached")
_TOLD = (*COLUMNS[3:], "cached", "tokens")


def cell(name: str, number: int, contestant: str, sealed: bool) -> Figures:
    """Plays one contestant in one chat."""
    session = (SEALED if sealed else SETS)[name]()[number]
    found = scores(session, play(EVERYONE[contestant], session, Extracting))
    return {**found, **(recalled(session) if contestant == "Ours" else {}), "set": name}


def of_sets(found: Sequence[Figures]) -> list[Figures]:
    """Returns the figures of each contestant over its chats of a set: sums, and some means."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for one in found:
        if "missing" not in one:
            told = sums.setdefault((one["set"], one["contestant"]), Counter())
            told.update({"chats": 1, **{key: one[key] for key in _TOLD if key in one}})
    means = {who: {key: told[key] / told["chats"] for key in _MEANS} for who, told in sums.items()}
    return [{"set": who[0], "contestant": who[1], **told, **means[who]} for who, told in sums.items()]


def measured(sets: Sequence[str], only: Sequence[str], jobs: int, sealed: bool) -> list[Figures]:
    """Returns the figures by set, then the missing cells."""
    chats = {name: len(load()) for name, load in (SEALED if sealed else SETS).items() if name in sets}
    wanted = [(name, at, one, sealed) for name in chats for one in only for at in range(chats[name])]
    found = run_all(cell, wanted, jobs, sealed=sealed)
    return [*of_sets(found), *(one for one in found if "missing" in one)]


if __name__ == "__main__":
    choices = {"sets": (SETS, list(SETS)), "only": (EVERYONE, FIRST)}
    sys.exit(command("real.conversations", __doc__, choices, measured, COLUMNS, halves=True))
