"""Groups: the smallest runs of rows that may not be cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.messages.rows import Call, Row


@dataclass(frozen=True, slots=True)
class Group:
    """The smallest run of history rows that may not be cut: [start, end)."""

    start: int
    end: int
    rendered: bool
    """True when at least one of its rows is rendered; a group of several rows always is."""
    user: bool
    """True for the single row of a user message."""
    answers: tuple[tuple[int, str], ...] = ()
    """(row, call id) of each result that answers a call of the group, in order; results not named here are orphans."""
    open: bool = False
    """True while calls of it may still be answered."""
    missing: tuple[Call, ...] = ()
    """Abandoned calls: passed over by a later user or assistant row before a result came."""


class Grouper:
    """Turns rows, fed one at a time, into closed groups. A closed group never changes again."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Row]] = []
        self._unanswered: dict[int, Call] = {}
        """Calls without a result, by their place in the row."""
        self._places: dict[str, list[int]] = {}
        """Places of these calls by their ids: there may be thousands."""
        self._answers: list[tuple[int, str]] = []

    def feed(self, index: int, row: Row) -> list[Group]:
        """The groups that this row closes, oldest first; most often one, the row itself."""
        if not self._open:
            return self._start(index, row)
        if row.rendered and row.result_ids:
            self._open.append((index, row))
            for call_id in row.result_ids:
                self._answer(index, call_id)
            return [self._close(index + 1)] if not self._unanswered else []
        if row.rendered and row.role in ("user", "assistant"):
            return [*self.pass_over(), *self._start(index, row)]
        self._open.append((index, row))
        return []

    @property
    def open_start(self) -> int | None:
        """History index of the assistant row whose calls are open; None when there is none."""
        return self._open[0][0] if self._open else None

    def open_groups(self) -> list[Group]:
        """The open run as it stands, without closing it: its calls may still be answered."""
        if not self._open:
            return []
        return [Group(self._open[0][0], self._open[-1][0] + 1, True, False, tuple(self._answers), open=True)]

    def pass_over(self) -> list[Group]:
        """Close the open run as abandoned: calls without a result stay without one."""
        if not self._open:
            return []
        rows, last = self._open, self._answers[-1][0] if self._answers else self._open[0][0]
        closed = self._close(last + 1)
        return [closed, *(_single(index, row) for index, row in rows if index > last)]

    def _start(self, index: int, row: Row) -> list[Group]:
        if not row.calls:
            return [_single(index, row)]
        self._open, self._unanswered, self._answers = [(index, row)], dict(enumerate(row.calls)), []
        self._places = places_by_id(row.calls)
        return []

    def _answer(self, index: int, call_id: str) -> None:
        """A result belongs to the nearest earlier unanswered call with its id."""
        places = self._places.get(call_id)
        if places:
            del self._unanswered[places.pop()]
            self._answers.append((index, call_id))

    def _close(self, end: int) -> Group:
        missing = tuple(self._unanswered.values())
        group = Group(self._open[0][0], end, True, False, tuple(self._answers), missing=missing)
        self._open, self._unanswered, self._answers, self._places = [], {}, [], {}
        return group


def places_by_id(calls: Sequence[Call]) -> dict[str, list[int]]:
    """Places of calls by their ids; a result belongs to the last one of its id that has none yet."""
    places: dict[str, list[int]] = {}
    for at, call in enumerate(calls):
        places.setdefault(call.id, []).append(at)
    return places


def answered_calls(rows: Sequence[Row], group: Group) -> dict[int, list[Call]]:
    """The calls that each row of a group answers: the nearest ones with these ids."""
    calls = rows[group.start].calls
    places = places_by_id(calls)
    found: dict[int, list[Call]] = {}
    for index, call_id in group.answers:
        found.setdefault(index, []).append(calls[places[call_id].pop()])
    return found


def _single(index: int, row: Row) -> Group:
    return Group(index, index + 1, row.rendered, row.user)
