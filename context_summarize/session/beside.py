"""What a view shows beside its rows: the thread of its cut, and reminders that the host needs whole. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from context_summarize.core.cut import Cut
from context_summarize.core.entries import Entry
from context_summarize.core.frames import thread_entry
from context_summarize.core.log import Log
from context_summarize.core.thread import Thread
from context_summarize.core.view import View
from context_summarize.messages.reading import is_reminder
from context_summarize.messages.rows import LASTING, SHOWN, JsonRow
from context_summarize.messages.view_rows import view_row


@dataclass(frozen=True, slots=True)
class Written:
    """The thread of a cut."""

    log: Log
    cut: Cut
    """Its shape."""
    text: str = ""
    """Its lines without their frame; "" if it quotes nothing."""
    entry: Entry | None = None
    """Its row."""
    summaries: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The texts of the summaries beside it, by key and first group: without what the thread quotes."""

    def is_of(self, log: Log, cut: Cut) -> bool:
        """Returns True if this is the thread of this cut of this log."""
        return self.log is log and self.cut == cut.shape


def written(thread: Thread, empty: Written, shown: View) -> Written:
    """Returns the thread of a cut.

    Args:
        shown: the view of the cut without a thread. Rows that came after the cut have no part in it.
    """
    log, cut = empty.log, empty.cut
    end = log.row_after_number(cut.rows)
    rows = (entry.origin for entry in shown.entries if entry.origin is not None and entry.origin < end)
    numbers = {log.number_of(row) for row in rows if row not in shown.shortened}
    whole = {number for number in numbers if number is not None}
    text = thread.text(cut.groups, cut.thread_room, whole, [one.text for one in shown.texts.values()])
    texts = {
        (node.key, node.first_group): thread.summary(one.text, node.first_group, node.end_group, text)
        for node, one in shown.texts.items()
    }
    return replace(empty, text=text, entry=thread_entry(log, text, cut.groups) if text else None, summaries=texts)


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
