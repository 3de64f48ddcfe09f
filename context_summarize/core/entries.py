"""Entries: history rows as a view shows them, each group in a valid order, whole or shortened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from context_summarize.core.groups import Group
from context_summarize.messages.rows import JsonRow, Row
from context_summarize.messages.shortening import cut_to_note, shortened_to
from context_summarize.messages.view_rows import synthetic_result, view_row
from context_summarize.tokens.measure import Count, measure

HARD_FLOOR = 24
"""Tokens below which no row is shortened further."""


class Entry(NamedTuple):
    """One row of a view."""

    origin: int | None
    """Row of the history; None for a row that is made up to keep the view valid."""
    row: JsonRow
    tokens: int


def group_entries(rows: Sequence[Row], group: Group, tokens: Callable[[int], int], count: Count) -> tuple[Entry, ...]:
    """Returns the call, all its results right after it, then the rows that came between.

    Rows between the results of an open group are left out until the group closes. Otherwise later results would move
    these rows down, and the earlier view would be no prefix of the later one.

    Args:
        rows: the whole history.
    """
    answers = {index: [call.id for call in calls] for index, calls in group.answers.items()}
    first, between = list[Entry](), list[Entry]()
    for index in range(group.start, group.end):
        row = view_row(rows[index], answers.get(index))
        if row is not None:
            place = first if index == group.start or index in answers else between
            place.append(Entry(index, row, tokens(index)))
    first += [Entry(None, row, measure(row, count)) for row in map(synthetic_result, group.missing)]
    return tuple(first if group.open else first + between)


def short_length(longest: int) -> int:
    """Returns the tokens that remain of a result longer than `longest`."""
    return max(HARD_FLOOR, longest // 4)


def shortened_row(row: JsonRow, size: int, keep: int, count: Count, hint: str) -> tuple[JsonRow, int]:
    """Returns a copy of a view row of `size` tokens, cut to about `keep`, which are fewer; and its tokens.

    The copy is head and tail with a note of what is left out, which ends with `hint`. A row that cannot be cut so far
    (many short texts, arguments of many fields) becomes a note alone.
    """
    share = keep / size
    for _ in range(4):
        out = shortened_to(row, share, hint)
        tokens = measure(out, count)
        if tokens <= keep:
            return out, tokens
        share *= 0.6
    hard = cut_to_note(row)
    least = measure(hard, count)
    return (hard, least) if least < tokens else (out, tokens)
