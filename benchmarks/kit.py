"""`python -m benchmarks.kit`: compaction-conformance-kit, a test by others, on its own sessions and on the desk.

The kit plants canaries, runs a compactor five times, each time on its own output, and looks for them. `ours` compacts
as in a host: not where a view fits. `forced` compacts each output as if it were pasted into a new session. The kit's
checklists look for its own labels. Seeds and budgets (shares of characters) are those of its benchmark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from statistics import mean
from typing import Any

from benchmarks.clock import LoopClock, run_virtually
from benchmarks.peers import Ours, Terms
from benchmarks.report import Figures, command, run_all
from benchmarks.sessions import called, recorded
from benchmarks.summarisers import MAX_OUTPUT, Extracting
from benchmarks.tokens import Row, count, said, text_of

ROUNDS, SEEDS, BUDGETS = 5, (1, 2, 3, 4), (0.1, 0.2, 0.3)
BUILDERS = {"kinds": ["random"], "updates": ["semantic", "semantic_heldout"]}
SESSIONS = (*BUILDERS, *(f"desk {name}" for name in BUILDERS))
KINDS = ("safety_rule", "hard_constraint", "fact", "goal_state", "user_preference")
COLUMNS = ("compactor", "session", "budget", *KINDS, "latest", "stale", "pairs", "of budget", "over")
_SHOWN = re.compile(r"^\[(system|user|assistant|tool)\] ", re.M)


class OursInRounds:
    """This module as a compactor: each round has a new manager, which knows only the view of the round before."""

    name = "ours"

    def compact(self, turns: Sequence[Any], round_num: int = 1, budget_chars: int | None = None) -> Any:
        text = "\n".join(turn.text for turn in turns)
        budget = count(text) * (budget_chars or len(text)) // len(text)
        view = run_virtually(self._view(rows_of(turns), budget))
        return import_module("compaction_kit").CompactedContext(as_text(view), self.name, round_num)

    async def _view(self, rows: Sequence[Row], budget: int) -> list[Row]:
        summariser = Extracting(count, budget + MAX_OUTPUT)
        ours = Ours(Terms(summariser=summariser, count=count, budget=budget, clock=LoopClock()))
        try:
            for row in rows:
                await ours.add(row)
            await ours.view()
            if self.name == "forced":
                await ours.manager.compact()
            return await ours.view()
        finally:
            await ours.close()


def rows_of(turns: Iterable[Any]) -> list[Row]:
    """Returns turns as rows, and splits a view that came as one turn. Later system rows become the user's."""
    rows: list[Row] = []
    for turn in turns:
        _, *parts = _SHOWN.split(turn.text if _SHOWN.match(turn.text) else f"[{turn.role}] {turn.text}")
        for role, text in zip(parts[::2], parts[1::2], strict=True):
            row = {"role": "user" if role == "system" and rows else role, "content": text.strip()}
            rows += called(len(rows), "tool", {}, text.strip()) if role == "tool" else [row]
    return rows


def as_text(view: Iterable[Row]) -> str:
    """Returns a view as the kit writes turns."""
    return "\n".join(f"[{row['role']}] {text_of(row)}" for row in view if text_of(row))


def set_into(rows: Sequence[Row], turns: Sequence[Any]) -> tuple[Any, ...]:
    """Returns rows as turns, with the kit's pairs spread evenly, each before a row of the user."""
    places = [at for at, row in enumerate(rows) if row["role"] == "user"]
    pairs = [turn for turn in turns if turn.role != "system"]
    made = [type(turns[0])(row["role"], said(row)) for row in rows]
    for at in reversed(range(0, len(pairs), 2)):
        place = places[at * len(places) // len(pairs)]
        made[place:place] = pairs[at : at + 2]
    return tuple(made)


def cell(session: str, who: str) -> Figures:
    """Plays all sessions of one kind, and returns a line for each compactor and budget."""
    theirs = import_module("compaction_kit.cli").COMPACTORS
    made = theirs if who == "theirs" else {who: type(who, (OursInRounds,), {"name": who})}
    return {"lines": [{"compactor": one, **_figures(session, made[one], part)} for part in BUDGETS for one in made]}


def _figures(session: str, compactor: Any, budget: float) -> Figures:
    """Returns each kind's shares after each round, with the kit's verdict; updates and pairs after the last."""
    kit = import_module("compaction_kit")
    runs, latest, stale, pairs = list[Any](), list[bool](), list[bool](), list[bool]()
    for builder, seed in product(BUILDERS[session.removeprefix("desk ")], SEEDS):
        made, planted, *more = getattr(kit, f"build_{builder}_session")(seed)
        if session.startswith("desk "):
            made = replace(made, turns=set_into(recorded(), made.turns))
        runs.append(kit.run_conformance(made, compactor(), ROUNDS, planted, budget_fraction=budget))
        last, updated = runs[-1].rounds[-1], [one for one in planted if one.superseded_tokens]
        latest += [last.survived[one.id] for one in updated]
        stale += [any(old.lower() in last.context.text.lower() for old in one.superseded_tokens) for one in updated]
        pairs += [all(last.survived[one] for one in pair) for meta in more for pair in meta["distinct_pairs"]]
    rounds = zip(*(run.rounds for run in runs), strict=True)
    shares = [{kind: mean(one.survival_by_type[kind] for one in same) for kind in KINDS} for same in rounds]
    merged = [replace(one, survival_by_type=share) for one, share in zip(runs[0].rounds, shares, strict=True)]
    found = kit.build_report(replace(runs[0], rounds=merged)).findings
    return {
        "session": session,
        "budget": budget,
        **{one.canary_type: f"{one.curve[0]:.0%} → {one.curve[-1]:.0%} {one.verdict}" for one in found},
        "curves": {one.canary_type: one.curve for one in found},
        "latest": mean(latest),
        "stale": mean(stale),
        "pairs": mean(pairs) if pairs else None,
        "of budget": mean(run.rounds[-1].output_chars / run.rounds[-1].budget_chars for run in runs),
        "over": mean(not one.within_budget for run in runs for one in run.rounds),
    }


def measured(sessions: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """Plays all cells and returns their lines."""
    return [line for one in run_all(cell, [*product(sessions, only)], jobs) for line in one.get("lines", [one])]


if __name__ == "__main__":
    known = ("ours", "forced", "theirs")
    sys.exit(command("kit", __doc__, {"sessions": (SESSIONS, SESSIONS), "only": (known, known)}, measured, COLUMNS))
