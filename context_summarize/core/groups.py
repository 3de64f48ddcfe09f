"""Groups: the smallest runs of rows that may not be cut."""

from __future__ import annotations

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
        self._unanswered: list[Call] = []
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
        self._open, self._unanswered, self._answers = [(index, row)], list(row.calls), []
        return []

    def _answer(self, index: int, call_id: str) -> None:
        """A result belongs to the nearest earlier unanswered call with its id."""
        for position in range(len(self._unanswered) - 1, -1, -1):
            if self._unanswered[position].id == call_id:
                del self._unanswered[position]
                self._answers.append((index, call_id))
                return

    def _close(self, end: int) -> Group:
        group = Group(self._open[0][0], end, True, False, tuple(self._answers), missing=tuple(self._unanswered))
        self._open, self._unanswered, self._answers = [], [], []
        return group


def _single(index: int, row: Row) -> Group:
    return Group(index, index + 1, row.rendered, row.user)
