"""`NumberedRows`: the rendered rows of a history by their numbers, with the calls that they answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from context_summarize.background import Steps, finished
from context_summarize.core.frames import NAME
from context_summarize.core.groups import Group, answered_calls
from context_summarize.core.history import History
from context_summarize.core.rendering import render_steps
from context_summarize.messages.rows import Call, Row
from context_summarize.messages.text import render_parts
from context_summarize.transcript.calls import pieces_without_calls, without_calls
from context_summarize.transcript.rows import RenderedRow


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A rendered row, the calls that it answers, and the number of the row with those calls."""

    row: RenderedRow
    calls: Sequence[Call] = ()
    caller: int = 0

    @property
    def searched(self) -> str:
        """What of the row is searched: nothing that this tool was asked or has answered."""
        return finished(self.searched_steps())

    def searched_steps(self) -> Steps[str]:
        """The same in steps."""
        if any(call.name == NAME for call in self.calls):
            return ""
        pieces: list[str] = []
        for piece in pieces_without_calls(self.row.text, NAME):
            pieces.append(piece)
            yield
        # A copy of megabytes would be one long step.
        return self.row.text if sum(map(len, pieces)) == len(self.row.text) else "".join(pieces)


class NumberedRows:
    """Rows by number, as the history is now, without rows that come later. The constructor is cheap."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._closed = len(history.rendered)
        self.closed_rows = history.closed_rows()
        """How many of them stand in closed groups."""
        self._open: Group | None = next(iter(history.open_groups()), None)
        opened = range(self._open.start, self._open.end) if self._open else ()
        self.total = self.closed_rows + sum(history.rows[at].rendered for at in opened)
        """Number of rows that can be read: 1 to this."""
        self._read: tuple[int, list[ShownRow]] = (-1, [])

    def row(self, number: int) -> ShownRow:
        """The row of this number, which is 1 to `total`."""
        if number > self.closed_rows:
            ordinal = self._closed
        else:
            ordinal = bisect_right(self.history.rendered_rows, number - 1, hi=self._closed) - 1
        if self._read[0] != ordinal:
            group, first = self._group(ordinal)
            self._read = ordinal, shown_rows(self.history.rows, group, first)
        shown = self._read[1]
        return shown[number - shown[0].row.number]

    def texts(self, first: int, until: int) -> Iterator[tuple[int, str]]:
        """Numbers and unescaped texts of the rows that are searched; `first` is 1 or the first of the open group."""
        ordinals = range(self._closed if first > self.closed_rows else 0, self._closed + (self._open is not None))
        rows = (pair for ordinal in ordinals for pair in _answering(self.history.rows, self._group(ordinal)[0]))
        for number, (row, calls) in zip(range(first, until + 1), rows, strict=False):
            if any(call.name == NAME for call in calls):
                continue
            names = {call.id: call.name for call in calls}
            yield number, without_calls("\n".join(part for _, part in render_parts(row, names, ())), NAME)

    def _group(self, ordinal: int) -> tuple[Group, int]:
        """A rendered group and the number of its first row; the open group is the last one."""
        if ordinal < self._closed:
            return self.history.rendered_group(ordinal), self.history.rendered_rows[ordinal] + 1
        assert self._open is not None, "a number within `total` is in a closed group or in the open one"
        return self._open, self.closed_rows + 1


def shown_rows(rows: Sequence[Row], group: Group, first: int) -> list[ShownRow]:
    """The rendered rows of a group, whole, numbered from `first`."""
    return finished(shown_row_steps(rows, group, first))


def shown_row_steps(rows: Sequence[Row], group: Group, first: int) -> Steps[list[ShownRow]]:
    """The same as `shown_rows`, a row or a piece of one a step."""
    rendered = yield from render_steps(rows, group, number=first, segment_tokens=None)
    calls = [calls for _, calls in _answering(rows, group)]
    return [ShownRow(*pair, first) for pair in zip(rendered, calls, strict=True)]


def _answering(rows: Sequence[Row], group: Group) -> Iterator[tuple[Row, Sequence[Call]]]:
    """The rendered rows of a group, each with the calls that it answers: the nearest calls with these ids."""
    answered = answered_calls(rows, group)
    for index in range(group.start, group.end):
        if rows[index].rendered:
            yield rows[index], answered.get(index, ())
