"""The columns of the report's tables, and a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.field.grid import MAIN, Grid
from benchmarks.field.model import CODE, PROSE
from benchmarks.field.result import Result

Show = Callable[[float], str]


def percent(value: float) -> str:
    """A share in whole percent."""
    return f"{value:.0%}"


def millions(value: float) -> str:
    """In millions, with two decimals."""
    return f"{value / 1e6:.2f}"


def whole(value: float) -> str:
    """A whole number."""
    return f"{value:,.0f}"


def share(value: float) -> str:
    """A share in tenths of a percent."""
    return f"{value:.1%}"


def two(value: float) -> str:
    """Two decimals."""
    return f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    head: str
    value: Callable[[Result], float]
    show: Show
    spread: bool = False
    """Show lowest and highest where the seeds differ."""

    def cell(self, results: Sequence[Result]) -> str:
        """Mean over the seeds, and their range."""
        values = [self.value(one) for one in results]
        mean = self.show(sum(values) / len(values))
        low, high = self.show(min(values)), self.show(max(values))
        return f"{mean} ({low} … {high})" if self.spread and low != high else mean


def _by(name: str) -> Callable[[Result], float]:
    return lambda one: one.facts_by[name]


MEMORY = (
    Column("end", lambda one: one.facts_end, percent, spread=True),
    Column("mean", lambda one: one.facts_mean, percent),
    Column("equal size", lambda one: one.facts_equal, percent),
    Column("user rows", _by("user"), percent),
    Column("assistant", _by("assistant"), percent),
    Column("tool", _by("tool"), percent),
    Column("codes", _by(CODE), percent),
    Column("prose", _by(PROSE), percent),
)
COST = (
    Column("price, M", lambda one: one.price, millions, spread=True),
    Column("requests, M", lambda one: one.price_main, millions),
    Column("summaries, M", lambda one: one.price_summaries, millions),
    Column("mean view", lambda one: one.view_mean, whole),
    Column("byte-stable", lambda one: one.stable, share),
    Column("calls", lambda one: one.calls, whole),
    Column("tokens in", lambda one: one.read, whole),
    Column("out", lambda one: one.wrote, whole),
    Column("largest input", lambda one: one.largest_input, whole),
)
TIME = (
    Column("waiting", lambda one: one.waited, share, spread=True),
    Column("worst, s", lambda one: one.waited_worst, whole),
    Column("compactions", lambda one: one.boundaries, whole),
    Column("CPU mean, ms", lambda one: one.cpu_mean, two, spread=True),
    Column("p50", lambda one: one.cpu_p50, two),
    Column("p99", lambda one: one.cpu_p99, two),
    Column("counting", lambda one: one.cpu_counting, two),
    Column("growth", lambda one: one.cpu_growth, two),
    Column("memory, MB", lambda one: one.memory, whole),
)
BREAKS = (
    Column("turns lost", lambda one: one.lost_turns, whole),
    Column("over budget", lambda one: one.over_budget, whole),
    Column("broken pairs", lambda one: one.broken_pairs, whole),
    Column("not a user's row first", lambda one: one.not_user_first, whole),
    Column("inputs refused", lambda one: one.refused, whole),
)
OTHERS = (
    MEMORY[0],
    MEMORY[2],
    COST[0],
    TIME[0],
    TIME[3],
    COST[5],
    *BREAKS[:4],
)
RESTART = (
    Column("calls after the restart", lambda one: one.calls_after_restart or 0, whole),
    Column("facts kept over it", lambda one: one.facts_after_restart or 0.0, percent),
)


def table(grid: Grid, names: Sequence[str], columns: Sequence[Column], scenario: str = MAIN) -> list[str]:
    """A Markdown table, a line for each contestant that has results."""
    lines = [f"| | {' | '.join(column.head for column in columns)} |", "| --- |" + " ---: |" * len(columns)]
    for name in names:
        results = grid.of(name, scenario)
        if results:
            lines.append(f"| {name} | {' | '.join(column.cell(results) for column in columns)} |")
    return [*lines, ""]
