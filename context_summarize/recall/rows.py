"""The messages of a history by number, as answers show and search them."""

from __future__ import annotations

from dataclasses import dataclass

from context_summarize.core.frames import NAME
from context_summarize.core.log import Log
from context_summarize.notes.reading import words_of_user
from context_summarize.transcript.groups import PartRow


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row with its number."""

    number: int
    row: PartRow
    is_answer: bool
    """True if it answers a call of the session's tool `recall`."""

    @property
    def searched(self) -> str:
        """The part of the row that is searched: without this tool's own queries and answers."""
        texts = (text for text in self.row.texts if not (text.call and text.call.name == NAME))
        return "" if self.is_answer else "\n".join(text.text for text in texts)

    @property
    def by_user(self) -> str:
        """What the user says here; else ""."""
        return words_of_user(self.row)[0]


class Rows:
    """The rendered rows of a history by number. The event loop makes it, quickly; a thread reads it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.closed = len(log.rendered)
        """How many rendered groups were closed when this was made. Groups that close later are left out."""
        self.total = log.rendered_rows
        """The highest number of a row that can be read; the lowest is 1."""
        self._open = next(iter(log.open_groups), None)
        self._closed_rows = log.closed_rendered_rows
        self._read: tuple[int | None, list[ShownRow]] = (-1, [])

    def row(self, number: int) -> ShownRow:
        """Returns the row of this number, which is 1 to `total`."""
        ordinal = self.log.group_of_message(number) if number <= self._closed_rows else None
        if self._read[0] != ordinal:
            self._read = ordinal, self.group(ordinal)
        return self._read[1][number - self._read[1][0].number]

    def group(self, ordinal: int | None) -> list[ShownRow]:
        """Returns the rows of a closed rendered group, or of the open one."""
        group, first = self._open, self._closed_rows + 1
        if ordinal is not None:
            group, first = self.log.rendered_group(ordinal), self.log.message_range(ordinal, ordinal + 1)[0]
        assert group is not None, "a number within `total` is in a closed group or in the open one"
        answers = {at for at, calls in group.answers.items() if any(call.name == NAME for call in calls)}
        indexes = (at for at in range(group.start, group.end) if self.log.rows[at].rendered)
        rows = zip(self.log.read(group), indexes, strict=True)
        return [ShownRow(number, row, at in answers) for number, (row, at) in enumerate(rows, first)]
