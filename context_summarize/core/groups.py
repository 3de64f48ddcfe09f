"""Groups, the smallest runs of rows that are never split."""

from __future__ import annotations

from dataclasses import dataclass

from context_summarize.messages.rows import Call, Row


@dataclass(frozen=True, slots=True)
class Group:
    """A run of history rows that is never split: [start, end)."""

    start: int
    end: int
    rendered: bool
    """True when at least one of its rows is rendered; a group of several rows always is."""
    user: bool
    """True for the single row of a user message."""
    answers: tuple[tuple[int, Call], ...] = ()
    """(row, call) for each result that answers a call of the group, in order; other results are orphans."""
    open: bool = False
    """True while its calls may still get results."""
    missing: tuple[Call, ...] = ()
    """Abandoned calls: a user or assistant row came before their result."""


class Grouper:
    """Turns rows, fed one at a time, into closed groups. A closed group never changes again."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Row]] = []
        self._calls: dict[str, list[Call]] = {}
        """The calls without a result, by id: there may be thousands."""
        self._answers: list[tuple[int, Call]] = []

    def feed(self, index: int, row: Row) -> list[Group]:
        """Returns the groups that this row closes, oldest first; most often one, the row itself."""
        if not self._open:
            return self._start(index, row)
        if row.rendered and row.result_ids:
            self._open.append((index, row))
            for call_id in row.result_ids:
                if calls := self._calls.get(call_id):  # a result belongs to the nearest earlier call with its id
                    self._answers.append((index, calls.pop()))
                    if not calls:
                        del self._calls[call_id]
            return [] if self._calls else [self._close(index + 1)]
        if row.rendered and row.role in ("user", "assistant"):
            return [*self._abandon(), *self._start(index, row)]
        self._open.append((index, row))
        return []

    def open_groups(self) -> list[Group]:
        """Returns the open run as a group, without closing it: its calls may still get results."""
        if not self._open:
            return []
        return [Group(self._open[0][0], self._open[-1][0] + 1, True, False, tuple(self._answers), open=True)]

    def _abandon(self) -> list[Group]:
        """Closes the open run: its calls without a result are abandoned."""
        rows = self._open
        last = self._answers[-1][0] if self._answers else rows[0][0]
        closed = self._close(last + 1)
        return [closed, *(_single(index, row) for index, row in rows if index > last)]

    def _start(self, index: int, row: Row) -> list[Group]:
        if not row.calls:
            return [_single(index, row)]
        self._open, self._calls, self._answers = [(index, row)], {}, []
        for call in row.calls:
            self._calls.setdefault(call.id, []).append(call)
        return []

    def _close(self, end: int) -> Group:
        missing = tuple(call for calls in self._calls.values() for call in calls)
        group = Group(self._open[0][0], end, True, False, tuple(self._answers), missing=missing)
        self._open, self._calls, self._answers = [], {}, []
        return group


def answered_calls(group: Group) -> dict[int, list[Call]]:
    """Returns the calls that each row of a group answers."""
    found: dict[int, list[Call]] = {}
    for index, call in group.answers:
        found.setdefault(index, []).append(call)
    return found


def _single(index: int, row: Row) -> Group:
    return Group(index, index + 1, row.rendered, row.user)
