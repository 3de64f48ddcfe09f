"""Figures and their bars: percentiles, verdicts, the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

REQUEST_P99_MS = {40_000: 5.0, 200_000: 10.0, 1_000_000: 25.0}
"""Most milliseconds at p99, by window in tokens."""
BLOCK_MS = 25.0
IMPORT_BLOCK_MS = 50.0
IMPORT_SECONDS = 30.0
LARGE_BLOCK_MS = 50.0
LARGE_CALLS = 10
"""Most provider calls that a row of any size takes."""
RESUME_SECONDS = 2.0
ADD_P50_MS = 0.05
MEMORY_RATIO = 1.15
STARTUP_MS = 100.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    value: float
    most: float | None = None
    """The bar; None where there is none."""
    least: float | None = None
    """A bar from below, for what must be reached."""
    note: str = ""

    @property
    def is_over(self) -> bool:
        """True where a bar is missed; a value that is no number misses every bar."""
        if math.isnan(self.value):
            return self.most is not None or self.least is not None
        over = self.most is not None and self.value > self.most
        return over or (self.least is not None and self.value < self.least)

    @property
    def verdict(self) -> str:
        """`ok`, `OVER`, `SHORT` or nothing where there is no bar."""
        if self.most is None and self.least is None:
            return ""
        if not self.is_over:
            return "ok"
        return "SHORT" if self.most is None else "OVER"


def percentile(values: Iterable[float], share: float) -> float:
    """The value at this share of the sorted values (nearest rank); NaN of none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[max(0, min(len(ordered), math.ceil(len(ordered) * share)) - 1)]


def request_p50_bar(view_rows: float) -> float:
    """Milliseconds that a request may take at p50: 0.2 ms and 0.6 µs for each row of its view."""
    return 0.2 + 0.0006 * view_rows


def request_p99_bar(window: int) -> float:
    """Milliseconds that a request may take at p99: those of the smallest named window that holds this one."""
    named = [known for known in REQUEST_P99_MS if known >= window] or [max(REQUEST_P99_MS)]
    return REQUEST_P99_MS[min(named)]


def shown(value: float) -> str:
    """Three significant digits; whole numbers from 100 on."""
    if math.isnan(value):
        return "-"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def print_table(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """One line a figure: what, measured, bar, verdict, note."""
    table = Table(title=title, title_justify="left")
    for name, justify in (("what", "left"), ("figure", "right"), ("bar", "right"), ("", "left"), ("note", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for figure in figures:
        bar = f"≤ {shown(figure.most)}" if figure.most is not None else ""
        if figure.least is not None:
            bar = f"≥ {shown(figure.least)}"
        table.add_row(figure.what, shown(figure.value), bar, figure.verdict, figure.note)
    console.print(table)
