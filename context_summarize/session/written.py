"""The thread of a cut, and the summaries as they stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from context_summarize.core.cut import Cut
from context_summarize.core.entries import Entry
from context_summarize.core.frames import thread_entry
from context_summarize.core.log import Log
from context_summarize.core.thread import Thread
from context_summarize.core.view import View


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
