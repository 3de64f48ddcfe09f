"""What a failing summariser does to this module and to its peers: `make bench-faults`.

The same recorded session is played to every contestant with a summariser that answers empty, raises, or answers as much
as it was shown. Facts are planted in user rows, and before every assistant row a view is asked for and measured: did
the turn survive, does the request fit, are calls and results still together, what is gone. A sound summariser, which
keeps every fact that it is shown, is the control: it shows that a contestant is set up as it is meant to be.

Exit code 1 when this module breaks; 0 whatever the peers do.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import platform
import re
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.peers import AS_THEY_COME, Contestant, Ours, Row, Terms, VirtualClock, text_of
from benchmarks.peers.check import lossless, no_answer, recorded
from context_summarize.messages.pairs import broken_pairs
from context_summarize.tokens.counter import TokenCounter

ROWS, FACTS, BUDGET = 400, 100, 12_000
SECONDS_BETWEEN_REQUESTS = 10.0
TURNS_BETWEEN_REQUESTS = 100
"""Turns of the event loop, enough for a summary to be written and kept."""
FACT = re.compile(r"FACT-\d{4}-[0-9A-F]{4}")
CALLS_PER_REQUEST = 0.25
"""Most provider calls a request, on average from the first call on, that ours may make."""


class SummariserDown(ConnectionError):
    """What the raising summariser raises."""


class Summariser:
    """The stand-in for a model that writes summaries, with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.calls = 0
        self.largest_input = 0
        """Characters."""

    async def answer(self, shown: str, max_output: int | None = None) -> str:
        """What it says of the text that it is shown, however long that is."""
        del max_output
        self.calls += 1
        self.largest_input = max(self.largest_input, len(shown))
        match self.fault:
            case "empty":
                return ""
            case "raises":
                raise SummariserDown("the summariser's service is down")
            case "oversized":
                return shown
        return "Customers were served. Known facts: " + " ".join(dict.fromkeys(FACT.findall(shown)))


FAULTS = ("none", "empty", "raises", "oversized")


def planted(total: int = ROWS, facts: int = FACTS) -> list[Row]:
    """The first rows of the recording, numbered in their metadata, with facts spread evenly over the user rows."""
    rows = recorded()[:total]
    users = [at for at, row in enumerate(rows) if row["role"] == "user"]
    facts = min(facts, len(users))
    for number in range(facts):
        row = rows[users[number * len(users) // facts]]
        row["content"] += f" My note for later is FACT-{number:04d}-{number * 7919 % 65536:04X}."
    return [{**row, "metadata": {"row": at}} for at, row in enumerate(rows)]


@dataclass(slots=True)
class Outcome:
    """What one contestant did under one fault."""

    title: str
    fault: str
    budget: int
    requests: int = 0
    lost_turns: int = 0
    """Requests at which an exception reached the host."""
    errors: dict[str, int] = field(default_factory=dict)
    """Those exceptions by kind."""
    over_budget: int = 0
    """Views larger than the budget, which a provider would refuse."""
    largest: int = 0
    """Tokens of the largest view."""
    broken_pairs: int = 0
    """Views with a call or a result alone."""
    lost_rows: int = 0
    """Rows that the last view neither holds nor has a summary for."""
    facts: int = 0
    """Planted facts in the last view."""
    calls: int = 0
    requests_since_call: int = 0
    """Requests from the first call on."""
    seconds: float = 0.0
    """CPU time."""

    @property
    def calls_per_request(self) -> float:
        """From the first call on."""
        return self.calls / self.requests_since_call if self.requests_since_call else 0.0

    @property
    def broken(self) -> list[str]:
        """What may not happen to ours."""
        return [
            text
            for text, bad in (
                (f"{self.lost_turns} turns lost: {self.errors}", self.lost_turns),
                (f"{self.over_budget} views over budget, the largest {self.largest:,}", self.over_budget),
                (f"{self.broken_pairs} views with broken pairs", self.broken_pairs),
                (f"{self.lost_rows} rows lost", self.lost_rows),
                (f"{self.calls_per_request:.2f} calls a request", self.calls_per_request > CALLS_PER_REQUEST),
            )
            if bad
        ]


class Trace:
    """Which rows the last view holds, which are summarised, and which are gone.

    A row that leaves the view counts as summarised when a new summary that is not empty comes with that view, and as
    long as any is shown: generous, for a summary may have been shown less than it stands for. The facts tell the rest.
    """

    def __init__(self, rows: Sequence[Row], frame: str) -> None:
        self._frame = frame
        self._by_text = {(row["role"], text_of(row)): row["metadata"]["row"] for row in reversed(rows)}
        self._fed = 0
        self._held: set[int] = set()
        self._summarised: set[int] = set()
        self._made: set[str] = set()
        self.lost = 0

    def view(self, fed: int, view: Sequence[Row]) -> None:
        """Take in the view that was served after `fed` rows."""
        held: set[int] = set()
        made: set[str] = set()
        for row in view:
            marks = row.get("metadata") or {}
            number = marks.get("row", self._by_text.get((row["role"], text_of(row))))
            if number is not None:
                held.add(number)
            elif text := text_of(row).replace(self._frame, "").strip():
                made.add(text)
        if made - self._made:
            self._summarised |= (self._held | set(range(self._fed, fed))) - held
        if not made:
            self._summarised.clear()
        self._summarised -= held
        self._fed, self._held, self._made = fed, held, made
        self.lost = len(set(range(fed)) - held - self._summarised)


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


# --- output -------------------------------------------------------------------------------------------------------

HEADS = (
    "summariser",
    "turns lost",
    "over budget",
    "largest request",
    "rows lost",
    "facts in view",
    "calls",
    "a request",
    "broken pairs",
)

SHOWN = {"none": "sound (control)"}


def cells(outcome: Outcome) -> list[str]:
    """One line of the table, without the contestant."""
    return [
        SHOWN.get(outcome.fault, outcome.fault),
        f"{outcome.lost_turns}",
        f"{outcome.over_budget}",
        f"{outcome.largest:,} ({outcome.largest / outcome.budget:.0%})",
        f"{outcome.lost_rows}",
        f"{outcome.facts}",
        f"{outcome.calls}",
        f"{outcome.calls_per_request:.2f}",
        f"{outcome.broken_pairs}",
    ]


def markdown(report: Report, budget: int) -> str:
    """The table, what could not be run and the versions, in Markdown."""
    lines = [f"| contestant | {' | '.join(HEADS)} |", "| --- | --- |" + " ---: |" * (len(HEADS) - 1)]
    before = ""
    for one in report.outcomes:
        lines.append(f"| {one.title if one.title != before else ''} | {' | '.join(cells(one))} |")
        before = one.title
    lines += ["", *(f"* {text}" for text in notes(report, budget))]
    return "\n".join(lines)


def notes(report: Report, budget: int) -> list[str]:
    """What the figures rest on."""
    requests = max((one.requests for one in report.outcomes), default=0)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    found = [
        f"Budget {budget:,} tokens; peers compact at 70 %, newest 10 rows kept where that can be set;"
        f" {requests} requests.",
        f"Python {platform.python_version()}; {versions}.",
    ]
    for one in report.outcomes:
        kinds = ", ".join(f"{kind} × {times}" for kind, times in sorted(one.errors.items()))
        found += [f"Reached the host of {one.title}, {SHOWN.get(one.fault, one.fault)}: {kinds}."] if kinds else []
    return found + [f"Not run: {title}: {why}." for title, why in report.missing.items()]


def show(console: Console, report: Report, budget: int) -> None:
    """The same for a terminal."""
    table = Table(title="A failing summariser, contestant by contestant")
    table.add_column("contestant", overflow="fold", min_width=24)
    for head in HEADS:
        table.add_column(head, justify="left" if head == HEADS[0] else "right")
    before = ""
    for one in report.outcomes:
        if before and one.title != before:
            table.add_section()
        table.add_row(one.title if one.title != before else "", *cells(one))
        before = one.title
    console.print(table)
    for text in notes(report, budget):
        console.print(text, highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 when this module broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the recording")
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens that a request may hold")
    parser.add_argument("--only-ours", action="store_true", help="leave the peers out")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args(arguments)
    # Peers and ours tell of every failure; the table counts them.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    contestants: tuple[type[Contestant], ...] = (Ours,) if options.only_ours else (Ours, *AS_THEY_COME)
    errors = Console(stderr=True)
    started = time.monotonic()
    report = asyncio.run(
        run(contestants, rows=options.rows, budget=options.budget, say=lambda text: errors.print(text, style="dim"))
    )
    errors.print(f"{time.monotonic() - started:.0f} s in all", style="dim")
    if options.markdown:
        print(f"{date.today().isoformat()}, `python -m benchmarks.faults --markdown`\n")
        print(markdown(report, options.budget))
    else:
        show(Console() if sys.stdout.isatty() else Console(width=160), report, options.budget)
    for text in report.broken:
        errors.print(f"{Ours.title} broke: {text}", style="red")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
