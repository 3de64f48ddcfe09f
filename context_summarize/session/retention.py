"""Reminders that a request must show whole although a compaction has summarised them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from context_summarize.core.log import Log
from context_summarize.core.view import View
from context_summarize.messages.reading import is_reminder
from context_summarize.messages.rows import LASTING, SHOWN, JsonRow
from context_summarize.messages.view_rows import view_row


def retained_rows(log: Log, shown: View, wanted: Sequence[str], held: Sequence[JsonRow] = ()) -> list[JsonRow]:
    """Returns the rows of the wanted reminders that a view does not show whole, in the order of the wishes.

    Args:
        wanted: contents of reminders. One that the history does not hold is shown all the same.
        held: the rows that requests with this cut have shown so far. They stay, even if the host no longer wants them,
            so that the earlier request is a prefix of the later one.
    """
    known = {row["content"] for row in held}
    new = [content for content in dict.fromkeys(wanted) if content not in known]
    return [*held, *(row for content in new for row in _missing(log, shown, content))]


def _missing(log: Log, shown: View, content: str) -> Iterator[JsonRow]:
    index = _newest(log, content)
    if index is None:
        yield {"role": "user", "content": content, "metadata": {**SHOWN, **LASTING}}
    elif index in shown.shortened or all(entry.origin != index for entry in shown.entries):
        yield from filter(None, [view_row(log.rows[index])])


def _newest(log: Log, content: str) -> int | None:
    """Returns the last row that is a reminder with this content; None without one."""
    for index in reversed(range(len(log))):
        raw = log.rows[index].raw
        if raw.get("content") == content and is_reminder(raw):
            return index
    return None
