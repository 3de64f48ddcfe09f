"""The README's table on real conversations, written between two marks from the same figures as the page."""

from __future__ import annotations

from benchmarks.real.figures import OURS, Figures
from benchmarks.real.sets import SETS
from benchmarks.real.tables import against_best

BEGIN, END = "<!-- make bench-real writes this: begin -->", "<!-- end -->"


def renewed(text: str, found: Figures) -> str:
    """The README with a new table, or as it is where it has no marks or there is nothing to tell.

    Args:
        text: the whole README.
        found: figures of whole data sets.
    """
    if BEGIN not in text or not found.sets() or OURS not in found.complete(found.sets()[0]):
        return text
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{_told(found, found.sets()[0])}\n{END}{rest.partition(END)[2]}"


def _told(found: Figures, name: str) -> str:
    data, ours = SETS[name], found.of(name, OURS)
    mean = ours.tokens // max(1, ours.chats)
    said = (
        f"{ours.chats} conversations of {name}, {mean:,} tokens each on average, a window of\n{data.budget:,} tokens,"
        f" one extractive summariser for all (`make bench-real`):\n"
    )
    return "\n".join([said, *against_best(found, name)]).rstrip()
