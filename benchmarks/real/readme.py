"""The README's table on real conversations, written between two marks from the same figures as the page."""

from __future__ import annotations

from benchmarks.real.figures import OURS, Figures
from benchmarks.real.sets import SETS
from benchmarks.real.tables import against_best

BEGIN, END = "<!-- make bench-real writes this: begin -->", "<!-- end -->"


COMMAND = "`make bench-real`"
TOLD = {
    "near": "questions whose answer, an exact value, stands in the last request near the question's words",
    "instructions kept": "standing instructions kept",
    "price": "price, in uncached input tokens for each token of the session",
    "waiting": "share of the time that is waiting",
}
"""Rows of the page's comparison that the README shows, and its words for them."""


def renewed(text: str, found: Figures) -> str:
    """The README with a new table, or as it is where it has no marks or there is nothing to tell.

    Rows that another command has measured stay as they are.

    Args:
        text: the whole README.
        found: figures of whole data sets.
    """
    if BEGIN not in text or not found.sets() or OURS not in found.complete(found.sets()[0]):
        return text
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    others = [line for line in table.splitlines() if line.startswith("| ") and _is_of_another(line)]
    return "\n".join([f"{before}{BEGIN}", *_told(found, found.sets()[0]), *others, f"{END}{after}"])


def _is_of_another(line: str) -> bool:
    return not line.startswith(("| |", "| ---")) and COMMAND not in line


def _told(found: Figures, name: str) -> list[str]:
    data, ours = SETS[name], found.of(name, OURS)
    mean = ours.tokens // max(1, ours.chats)
    rows = {cells[0]: cells for cells in map(_cells, against_best(found, name))}
    return [
        f"{ours.chats} conversations of {name}, {mean:,} tokens each on average, in a window of {data.budget:,}",
        "tokens; one summariser without a model for all:",
        "",
        "| | ours | best peer | command |",
        "| --- | --- | --- | --- |",
        *(f"| {told} | {rows[name][1]} | {rows[name][2]} | {COMMAND} |" for name, told in TOLD.items() if name in rows),
    ]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]
