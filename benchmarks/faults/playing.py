"""Plays the session to every contestant under every fault."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from benchmarks.faults.outcome import Outcome, Trace
from benchmarks.faults.summariser import BUDGET, FACT, FACTS, FAULTS, ROWS, Summariser, planted
from benchmarks.peers import AS_THEY_COME, Contestant, Ours, Row, Terms, VirtualClock, text_of
from benchmarks.peers.check import lossless, no_answer
from context_summarize.messages.pairs import broken_pairs
from context_summarize.tokens.counter import TokenCounter

SECONDS_BETWEEN_REQUESTS = 10.0
TURNS_BETWEEN_REQUESTS = 100
"""Turns of the event loop, enough for a summary to be written and kept."""


@dataclass(slots=True)
class Report:
    """All outcomes, and what could not be run."""

    outcomes: list[Outcome] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Contestant → why it was not run."""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """What this module did that it may not do."""
        return [f"{one.fault}: {text}" for one in self.outcomes if one.title == Ours.title for text in one.broken]


async def run(
    contestants: Sequence[type[Contestant]] = (Ours, *AS_THEY_COME),
    *,
    faults: Sequence[str] = FAULTS,
    rows: int = ROWS,
    facts: int = FACTS,
    budget: int = BUDGET,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Play the recording to every contestant under every fault."""
    counter = TokenCounter()
    await counter.load()
    count = functools.lru_cache(maxsize=200_000)(counter.count)
    session, report = planted(rows, facts), Report()
    for contestant in contestants:
        try:
            same = lossless(contestant, session, _terms(no_answer, session, budget, count, VirtualClock()))
        except ImportError as error:
            report.missing[contestant.title] = f"not installed, or without this class ({error})"
            continue
        if not same:
            report.missing[contestant.title] = "its adapter does not convert the rows without loss"
            continue
        for name in contestant.packages:
            report.versions[name] = metadata.version(name)
        for fault in faults:
            outcome = await play(contestant, fault, session, budget, count)
            report.outcomes.append(outcome)
            say(f"{contestant.title}, {fault}: {outcome.seconds:.1f} s")
    return report


async def play(contestant: type[Contestant], fault: str, rows: Sequence[Row], budget: int, count: Any) -> Outcome:
    """Play the rows to a new contestant.

    Raises:
        ImportError: the peer is not installed.
    """
    summariser, clock = Summariser(fault), VirtualClock()
    terms = _terms(summariser.answer, rows, budget, count, clock)
    one = contestant(terms)
    outcome, trace = Outcome(contestant.title, fault, budget), Trace(rows, contestant.frame)
    started = time.process_time()
    try:
        for fed, row in enumerate(rows):
            if row["role"] == "assistant":
                await _pass_time(clock)
                await _request(one, outcome, trace, fed, terms)
                outcome.requests_since_call += summariser.calls > 0
            await one.add(row)
    finally:
        await one.close()
    outcome.calls, outcome.lost_rows = summariser.calls, trace.lost
    outcome.seconds = time.process_time() - started
    return outcome


async def _pass_time(clock: VirtualClock) -> None:
    """What the model and the user take: work in the background, whose answers come at once, gets its turns."""
    clock.seconds += SECONDS_BETWEEN_REQUESTS
    for _ in range(TURNS_BETWEEN_REQUESTS):
        await asyncio.sleep(0)


def _terms(
    answer: Callable[[str, int | None], Awaitable[str]],
    rows: Sequence[Row],
    budget: int,
    count: Any,
    clock: VirtualClock,
) -> Terms:
    system = "\n\n".join(text_of(row) for row in rows if row["role"] == "system")
    terms = Terms(answer=answer, count=count, budget=budget, system=system, clock=clock)
    spoken = [row for row in rows if row["role"] != "system"]
    return Terms(
        answer=answer,
        count=count,
        budget=budget,
        system=system,
        mean_row=terms.size(spoken) / max(1, len(spoken)),
        clock=clock,
    )


async def _request(one: Contestant, outcome: Outcome, trace: Trace, fed: int, terms: Terms) -> None:
    outcome.requests += 1
    try:
        view = await one.view()
    except Exception as error:  # noqa: BLE001 (whatever reaches the host is what is counted)
        kind = type(error).__name__
        outcome.lost_turns += 1
        outcome.errors[kind] = outcome.errors.get(kind, 0) + 1
        return
    size = terms.size(view)
    outcome.largest = max(outcome.largest, size)
    outcome.over_budget += size > terms.budget
    outcome.broken_pairs += bool(broken_pairs(view))
    outcome.facts = len(set(FACT.findall("\n".join(text_of(row) for row in view))))
    trace.view(fed, view)
