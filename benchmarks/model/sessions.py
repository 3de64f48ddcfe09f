"""`python -m benchmarks.model.sessions`: sessions with a small real model, in real time: ours and two peers."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence

from benchmarks.model.server import serving
from benchmarks.peers import EVERYONE, Contestant, Ours, variant
from benchmarks.real import beam, recordings
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import scores
from benchmarks.sessions import Session
from benchmarks.tokens import count, measure

BUDGET = 5_000
"""Tokens of a request by `o200k_base`. The small model counts up to half as many again, and its answer needs room."""
TOKENS, MINUTES = 30_000, 20.0
"""Length of a session, and the longest time of one contestant."""
SMALL = {"prompts": "small", "segment_tokens": 2_048, "max_concurrency": 1, "wait_seconds": 240}
"""On two idle cores the engine reads some 250 and writes some 100 tokens a second, on busy ones a tenth of that: few
summaries, one at a time."""
CONTESTANTS: Mapping[str, type[Contestant]] = {
    "ours": variant("OursSmall", Ours, **SMALL),
    "langchain": EVERYONE["LangChainWhole"],
    "pydantic-ai": EVERYONE["PydanticAIWhole"],
}
SESSIONS: Mapping[str, Callable[[], Session]] = {
    "airline": lambda: recordings.load_all()[0],
    "beam": lambda: beam.load_all("100K")[0],
}
COLUMNS = (
    *("session", "contestant", "tokens", "seconds", "waited, s", "calls", "read", "wrote", "refused", "asked", "gold"),
    *("near", "view_mean", "view_last", "lost", "over_budget"),
)


def shortened(session: Session, tokens: int = TOKENS) -> Session:
    """Returns the first rows of a session, of about so many tokens, with the questions about them."""
    total, rows = 0, []
    for row in session.rows:
        if total >= tokens:
            break
        rows.append(row)
        total += measure(row, count)
    known = tuple(one for one in session.questions if one.sources and max(one.sources) < len(rows))
    return dataclasses.replace(session, rows=tuple(rows), questions=known, budget=BUDGET)


def played(contestant: str, session: Session) -> Figures:
    """Plays one contestant with an engine of its own."""
    with serving() as local:
        result = play(CONTESTANTS[contestant], session, local, real_time=True, minutes=MINUTES)
    waited = sum(one.waited for one in result.requests)
    return {**scores(session, result), "contestant": contestant, "waited, s": waited}


def cell(session: str, contestant: str) -> Figures:
    """Plays one contestant in the first rows of a session."""
    return played(contestant, shortened(SESSIONS[session]()))


def measured(sessions: Sequence[str], only: Sequence[str], jobs: int) -> list[Figures]:
    """Plays all cells. With more than one job the engines compete for cores."""
    return run_all(cell, [(session, name) for session in sessions for name in only], jobs, seconds=90 * int(MINUTES))


if __name__ == "__main__":
    choices = {"sessions": (SESSIONS, list(SESSIONS)), "only": (CONTESTANTS, list(CONTESTANTS))}
    sys.exit(command("model.sessions", __doc__, choices, measured, COLUMNS))
