"""`python -m benchmarks.small_window`: an agent with a small window and results that nearly fill it.

The prompt has 8,000 tokens, a result 300 to 5,000; now and then a row has three calls. Sizes are drawn evenly (*even*),
or evenly over their logarithm (*small*). Half of the calls search for a name of an earlier result, mostly of a recent
one. *breaks* are requests that do not begin as the one before them. *events* are names in calls that no verbatim row of
the request shows; *held* is the share of them that the request shows.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import Ours, Terms, variant
from benchmarks.prices import DOLLARS
from benchmarks.prospective import Watch
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session, assistant, plant
from benchmarks.summarisers import Extracting
from benchmarks.tokens import Row, count
from benchmarks.words import identifiers

REQUESTS, PROMPT, ANSWER = 174, 8_000, 4_096
SMALLEST, LARGEST = 300, 5_000
"""Tokens of a result."""
TURN = 12
"""Requests of a turn of the user."""
WINDOWS = {"32k": 32_000, "48k": 48_000, "64k": 64_000, "100k": 100_000}
SIZES = ["even", "small"]
COLUMNS = (
    *("window", "sizes", "seed", "contestant", *DOLLARS, "breaks", "cached", "waiting", "worst_wait", "view_mean"),
    *("facts", "events", "held", "over_budget", "calls"),
)


class InHost(Ours):
    """This module as a host uses it: the system prompt comes from a factory."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._system = terms.system

    async def add(self, row: Row) -> None:
        if row["role"] == "system":
            await self.manager.set_system_prompt_factory(self._prompt)
        else:
            await super().add(row)

    async def _prompt(self) -> str:
        return self._system


KINDS = (
    InHost,
    variant("InHost-summaries-20%", InHost, summary_share=0.2),
    variant("Frugal", InHost, keep_recent=4, compact_threshold=0.22),
)
CONTESTANTS = {one.__name__: one for one in KINDS}


def session(window: int, sizes: str, seed: int = 0) -> Session:
    """Returns a session of an agent that reads Python's own library; the first row is the prompt."""
    chance = random.Random(seed)
    files = [(path, path.read_text("utf-8", "replace").splitlines()) for path in sorted(_library())]
    files = [(path, lines) for path, lines in files if len(lines) > 700]
    shown: list[list[str]] = []
    rows: list[Row] = [{"role": "system", "content": _cut(files[0][1] * 9, PROMPT)}]
    asked = 0
    while asked < REQUESTS - 1:
        if asked % TURN == 0:
            rows.append(
                {"role": "user", "content": f"Please find out how {chance.choice(files)[0].stem} does its work."}
            )
        if asked % TURN == TURN - 1:
            rows.append({"role": "assistant", "content": f"It is found in {chance.choice(files)[0].name}."})
        else:
            rows += _calls(asked, sizes, files, shown, chance)
        asked += 1
    planted, facts = plant(rows[1:], 100, seed)
    return Session(name=f"{sizes}-{seed}", rows=(rows[0], *planted), facts=facts, budget=window - ANSWER - 1_000)


def _library() -> list[Path]:
    return [*Path(json.__file__).parent.parent.glob("[a-z]*.py")]


def _calls(number: int, sizes: str, files: Sequence[Any], shown: list[list[str]], chance: random.Random) -> list[Row]:
    """Returns one row with calls, and their results."""
    calls, results = list[Any](), list[Row]()
    for at in range(3 if number % 9 == 4 else 1):
        path, lines = chance.choice(files)
        first = chance.randrange(len(lines) - 600)
        given: dict[str, Any] = {"path": path.name, "offset": first}
        if shown and chance.random() < 0.5:
            back = min(len(shown), 1 + int(chance.expovariate(1 / 8)))
            given = {"pattern": chance.choice(shown[-back] or ["import"]), "path": path.name}
        even, log = chance.uniform(SMALLEST, LARGEST), chance.uniform(math.log(SMALLEST), math.log(LARGEST))
        text = _cut(lines[first:], int(even if sizes == "even" else math.exp(log)))
        results.append({"role": "tool", "tool_call_id": f"call_{number}_{at}", "name": "read", "content": text})
        calls.append((f"call_{number}_{at}", "read", given))
    shown.extend(sorted(identifiers(row["content"])) for row in results)
    return [assistant("", calls), *results]


def _cut(lines: Sequence[str], tokens: int) -> str:
    """Returns the first of these lines, of so many tokens."""
    found: list[str] = []
    for line in lines:
        tokens -= count(f"{line}\n")
        if tokens < 0:
            break
        found.append(line)
    return "\n".join(found)


def cell(window: str, sizes: str, seed: int, contestant: str) -> Figures:
    """Plays one contestant in one session."""
    played = session(WINDOWS[window], sizes, seed)
    watch = Watch(played)
    made = scores(played, play(CONTESTANTS[contestant], played, Extracting, look=watch))
    told = {"window": window, "sizes": sizes, "seed": seed, **made}
    return {**told, "events": watch.found["events"], "held": watch.found["held"] / max(1, watch.found["events"])}


def measured(
    windows: Sequence[str], sizes: Sequence[str], seeds: Sequence[str], only: Sequence[str], jobs: int
) -> list[Figures]:
    wanted = [(window, size, int(seed), who) for window in windows for size in sizes for seed in seeds for who in only]
    return run_all(cell, wanted, jobs)


if __name__ == "__main__":
    choices = {
        "windows": (WINDOWS, ["32k"]),
        "sizes": (SIZES, SIZES),
        "seeds": ([*"0123"], ["0"]),
        "only": (CONTESTANTS, ["InHost"]),
    }
    sys.exit(command("small_window", __doc__, choices, measured, COLUMNS))
