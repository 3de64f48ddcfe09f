"""`python -m benchmarks.model.sessions`: sessions with a small real model, in real time: ours and two peers."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from benchmarks.model.server import EngineError, serving
from benchmarks.peers import EVERYONE, Contestant, ours_with
from benchmarks.real import beam, recordings
from benchmarks.real.data import DataMissingError
from benchmarks.report import Figures, save, table
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session
from benchmarks.tokens import count, measure

BUDGET = 5_000
"""Tokens that one request may hold, as `o200k_base` counts them; the small model's own tokens are up to half as many
again, and an answer needs room too."""
SMALL = {"prompts": "small", "segment_tokens": 2_048, "max_concurrency": 1, "request_timeout": 240, "wait_seconds": 240}
"""On two idle cores the engine reads some 250 and writes some 100 tokens a second, on busy ones a tenth of that: few
summaries, one at a time."""
CONTESTANTS: dict[str, type[Contestant]] = {
    "ours": ours_with("OursSmall", **SMALL),
    "langchain": EVERYONE["LangChainWhole"],
    "pydantic-ai": EVERYONE["PydanticAIWhole"],
}
COLUMNS = (
    *("session", "contestant", "tokens", "seconds", "waited, s", "calls", "read", "wrote", "refused", "asked", "gold"),
    *("near", "gold_of_tail", "near_of_tail", "view_mean", "view_last", "lost", "over_budget"),
)


def shortened(session: Session, tokens: int, budget: int = BUDGET) -> Session:
    """The first rows of a session, of about so many tokens, with the questions about them."""
    total, rows = 0, []
    for row in session.rows:
        if total >= tokens:
            break
        rows.append(row)
        total += measure(row, count)
    known = tuple(one for one in session.questions if one.sources and max(one.sources) < len(rows))
    return dataclasses.replace(session, rows=tuple(rows), questions=known, budget=budget)


def played(name: str, session: Session, minutes: float, threads: int | None) -> Figures:
    """One contestant with an engine of its own.

    Raises:
        EngineError: the engine cannot be started.
        ImportError: the contestant is not installed.
    """
    with serving(threads) as local:
        # The session's own model is not asked: it answers at once.
        result = play(CONTESTANTS[name], session, local, pace=0.0, minutes=minutes)
    waited = sum(one.waited for one in result.requests)
    return {**scores(session, result), "contestant": name, "waited, s": waited}


def main() -> int:
    """Play, print the table, save; 1 where the engine cannot be started."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model.sessions", description=__doc__)
    parser.add_argument("--tokens", type=int, default=30_000, metavar="N", help="of each session, from its start")
    parser.add_argument("--minutes", type=float, default=20.0, help="that one contestant may take")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS), metavar="NAME")
    parser.add_argument("--threads", type=int, help="of the engine; default: cores that are idle")
    parser.add_argument("--save", type=Path, metavar="FILE", help="all figures as JSON")
    given = parser.parse_args()
    sessions = recordings.load_all()
    try:
        sessions.append(beam.load("100K", 1))
    except DataMissingError as error:
        print(error, file=sys.stderr)
    found = []
    try:
        for session in sessions:
            for name in given.only:
                found.append(played(name, shortened(session, given.tokens), given.minutes, given.threads))
                print(table(found[-1:], COLUMNS), file=sys.stderr, flush=True)
                save(given.save, found)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(found, COLUMNS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
