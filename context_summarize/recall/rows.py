"""The messages of a history by number, as answers show and search them: calls unfolded, edits as differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from context_summarize.core.frames import NAME
from context_summarize.core.groups import answered_calls
from context_summarize.core.log import Log
from context_summarize.messages.rows import Call, compact_json, equal_prefix
from context_summarize.notes.reading import told_by_user
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.rendered import RenderedRow, may_be_call, without_calls


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A rendered row, the calls that it answers, and the number of the row with those calls."""

    row: RenderedRow
    calls: Sequence[Call]
    caller: int

    @property
    def searched(self) -> str:
        """The part of the row that is searched: without this tool's own queries and answers."""
        return "" if any(call.name == NAME for call in self.calls) else without_calls(self.row.text, NAME)

    @property
    def by_user(self) -> str:
        """What the user says here, in a row of the user's or in a result; else ""."""
        return told_by_user(self.row.text) if self.calls else self.row.said if self.row.role == "user" else ""


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
        return self._read[1][number - self._read[1][0].row.number]

    def group(self, ordinal: int | None) -> list[ShownRow]:
        """Returns the rows of a closed rendered group, or of the open one."""
        rows, group, first = self.log.rows, self._open, self._closed_rows + 1
        if ordinal is not None:
            group, first = self.log.rendered_group(ordinal), self.log.message_range(ordinal, ordinal + 1)[0]
        assert group is not None, "a number within `total` is in a closed group or in the open one"
        calls = answered_calls(group)
        indexes = (at for at in range(group.start, group.end) if rows[at].rendered)
        rendered = self.log.render(group, number=first)
        return [ShownRow(unfolded(row), calls.get(at, ()), first) for row, at in zip(rendered, indexes, strict=True)]


def unfolded(row: RenderedRow) -> RenderedRow:
    """Returns the row with long arguments of its calls as lines of their own, and old and new texts as a difference."""
    if not row.calls:
        return row
    lines = [_unfolded_call(line) if may_be_call(line) else line for line in row.text.split("\n")]
    return replace(row, text="\n".join(lines))


def _unfolded_call(line: str) -> str:
    name, _, given = line.partition("(")
    try:
        arguments = json.loads(given.removesuffix(")"))
    except (ValueError, RecursionError):
        return line
    parts: list[str] = []
    for key in sorted(arguments, reverse=True) if isinstance(arguments, dict) else ():  # old texts before new ones
        text, other = arguments.get(key), f"new{key[3:]}"
        if key.startswith("old") and isinstance(text, str) and isinstance(arguments.get(other), str):
            parts.append(_difference(text, arguments.pop(other)))
        elif isinstance(text, str) and "\n" in text:
            parts.append(f"{key}:\n{text}")
        else:
            continue
        del arguments[key]
    return escape_marks("\n".join([f"{name}({compact_json(arguments)})", *parts])) if parts else line


def _difference(old: str, new: str) -> str:
    """Returns the lines of two texts: after "- " or "+ "; those that both begin or end with only once."""
    before, after = old.split("\n"), new.split("\n")
    head = equal_prefix(before, after)
    tail = equal_prefix(before[head:][::-1], after[head:][::-1])
    lines = [f"  {line}" for line in before[:head]]
    lines += [f"- {line}" for line in before[head : len(before) - tail]]
    lines += [f"+ {line}" for line in after[head : len(after) - tail]]
    return "\n".join([*lines, *(f"  {line}" for line in before[len(before) - tail :])])
