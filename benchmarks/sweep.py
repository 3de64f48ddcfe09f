"""`python -m benchmarks.sweep`: where a compaction begins, in windows of several sizes, over three kinds of session.

Each cell is one value of `compact_threshold` in one window and one kind of session, at least three windows long where
the session can be made so long. Prices are dollars at 3 dollars a million tokens of uncached input. *Used later* is the
share of identifiers that calls of recorded coding sessions needed, and that stood in the request although the row that
showed them last did not. A cell that ended without a compaction says so: its other figures are of no compaction.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from benchmarks.peers.ours import Ours
from benchmarks.prospective import Watch
from benchmarks.real.coding import load_all
from benchmarks.report import Figures, command, run_all
from benchmarks.run import Look, Result, play
from benchmarks.scores import cached, facts, price
from benchmarks.sessions import Session, plant, reader, recorded
from benchmarks.summarisers import Extracting, Keeping

_WINDOWS = 3
"""How many windows a session is long, at least."""
_DOLLARS = 3e-6
"""Of a token of uncached input."""
_DESK, _READ = 119_000, 1_300
"""Tokens of the recorded desk, and of one read."""
SHARES = (0.45, 0.65, 0.8)
CAPS: Mapping[str, int | None] = {"none": None, "100k": 100_000, "150k": 150_000}
BUDGETS = {"16k": 16_000, "40k": 40_000, "200k": 200_000, "1M": 1_000_000}
COLUMNS = ("session", "window", "threshold", "dollars", "compactions", "cached", "facts", "used_later", "view_mean")


def thresholds(window: int) -> dict[str, Any]:
    """The values that differ in this window: a bound in tokens above what the share gives changes nothing."""
    found: dict[str, Any] = {}
    for share in SHARES:
        for name, cap in CAPS.items():
            if cap is None:
                found[f"{share}"] = share
            elif cap < share * window:
                found[f"{share}, {name}"] = (share, cap)
    return found


def desk(window: int) -> Session:
    """The field scenario: the recorded desk with planted facts."""
    copies = max(1, -(-_WINDOWS * window // _DESK))
    rows, planted = plant(recorded(copies), 100 * copies)
    return Session(name="desk", rows=rows, facts=planted, budget=window)


def files(window: int) -> Session:
    """An agent that reads files."""
    return reader(window, max(150, -(-_WINDOWS * window // _READ)))


KINDS: Mapping[str, Callable[[int], Session]] = {"desk": desk, "reader": files}


def _played(session: Session, given: Any, summariser: Any, look: Look | None = None) -> tuple[Result, int]:
    """The result of these settings, and how many compactions were made."""
    made: list[int] = []

    class Set(Ours):
        """This module with a threshold."""

        options: ClassVar[Mapping[str, Any]] = {"keep_recent": 10, "compact_threshold": given}

        async def close(self) -> None:
            made.append((await self.manager.statistics()).compactions)
            await super().close()

    return play(Set, session, summariser, look=look), sum(made)


def cell(kind: str, window: str, threshold: str) -> Figures:
    """One threshold in one window."""
    budget = BUDGETS[window]
    given = thresholds(budget)[threshold]
    told: Figures = {"session": kind, "window": window, "threshold": threshold}
    if kind == "coding":
        return {**told, **_coding(budget, given)}
    session = KINDS[kind](budget)
    result, compactions = _played(session, given, Keeping)
    return {
        **told,
        "dollars": _DOLLARS * price(result),
        "compactions": compactions or "none",
        "cached": cached(result),
        "facts": facts(session, result.view),
        "view_mean": sum(one.tokens for one in result.requests) / len(result.requests),
    }


def _coding(budget: int, given: Any) -> Figures:
    """The recorded coding sessions: what later calls used."""
    found, dollars, compactions, tokens, hits = Counter[str](), 0.0, 0, 0, 0
    for session in load_all():
        watch = Watch(session)
        result, made = _played(replace(session, budget=budget), given, Extracting, watch)
        found.update(watch.found)
        dollars, compactions = dollars + _DOLLARS * price(result), compactions + made
        tokens += sum(one.tokens for one in result.requests)
        hits += sum(one.cached for one in result.requests)
    used = {"used_later": f"{found['held']} of {found['events']}"} if found["events"] else {}
    return {"dollars": dollars, "compactions": compactions or "none", "cached": hits / max(1, tokens), **used}


def measured(sessions: Sequence[str], windows: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """All cells of these sessions in these windows, or those of some thresholds."""
    cells = [(kind, window, name) for window in windows for kind in sessions for name in thresholds(BUDGETS[window])]
    return run_all(cell, [one for one in cells if not only or one[2] in only], jobs, seconds=3_000)


if __name__ == "__main__":
    choices = {
        "sessions": ([*KINDS, "coding"], [*KINDS, "coding"]),
        "windows": (BUDGETS, ["16k", "40k"]),
        "only": (thresholds(BUDGETS["1M"]), ()),
    }
    sys.exit(command("sweep", __doc__, choices, measured, COLUMNS))
