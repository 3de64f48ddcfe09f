"""Groups, the smallest runs of rows that are never split; and entries, their rows as a view shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from context_summarize.messages.rows import Call, JsonRow, Row
from context_summarize.messages.shortening import cut_to_note, shortened_to
from context_summarize.messages.view_rows import synthetic_result, view_row
from context_summarize.tokens.measure import Count, measure

HARD_FLOOR = 24
"""Tokens below which no row is shortened further."""


@dataclass(frozen=True, slots=True)
class Group:
    """A run of history rows that is never split: [start, end). It is rendered if its first row is."""

    start: int
    end: int
    answers: Mapping[int, Sequence[Call]] = field(default_factory=dict)
    """The calls of the group that each of its rows answers; other results are orphans."""
    open: bool = False
    """True while its calls may still get results."""
    missing: tuple[Call, ...] = ()
    """Abandoned calls: a user or assistant row came before their result."""


class Grouper:
    """Turns rows, fed one at a time, into closed groups. A closed group never changes again."""

    def __init__(self) -> None:
        self._run = range(0)
        """The rows since the calls that are open; empty without any."""
        self._calls: dict[str, list[Call]] = {}
        """The calls without a result, by id: there may be thousands."""
        self._answers: dict[int, list[Call]] = {}

    def feed(self, index: int, row: Row) -> list[Group]:
        """Returns the groups that this row closes, oldest first; most often one, the row itself."""
        if not self._run:
            return self._begin(index, row)
        if row.rendered and row.role in ("user", "assistant") and not row.result_ids:
            return [*self._abandon(), *self._begin(index, row)]
        self._run = range(self._run.start, index + 1)
        for call_id in row.result_ids:
            if calls := self._calls.get(call_id):  # a result belongs to the nearest earlier call with its id
                self._answers.setdefault(index, []).append(calls.pop())
                if not calls:
                    del self._calls[call_id]
        return [] if self._calls else [self._close(index + 1)]

    def open_groups(self) -> list[Group]:
        """Returns the open run as a group, without closing it: its calls may still get results."""
        return [Group(self._run.start, self._run.stop, dict(self._answers), open=True)] if self._run else []

    def _begin(self, index: int, row: Row) -> list[Group]:
        if not row.calls:
            return [Group(index, index + 1)]
        self._run = range(index, index + 1)
        for call in row.calls:
            self._calls.setdefault(call.id, []).append(call)
        return []

    def _abandon(self) -> list[Group]:
        """Closes the open run: its calls without a result are abandoned."""
        end = self._run.stop
        closed = self._close(max(self._answers, default=self._run.start) + 1)
        return [closed, *(Group(at, at + 1) for at in range(closed.end, end))]

    def _close(self, end: int) -> Group:
        missing = tuple(call for calls in self._calls.values() for call in calls)
        group = Group(self._run.start, end, self._answers, missing=missing)
        self._run, self._calls, self._answers = range(0), {}, {}
        return group


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
