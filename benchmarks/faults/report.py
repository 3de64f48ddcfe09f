"""The outcomes as a table, in Markdown or for a terminal, and what the figures rest on."""

from __future__ import annotations

import platform

from rich.console import Console
from rich.table import Table

from benchmarks.faults.outcome import Outcome
from benchmarks.faults.playing import Report

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
