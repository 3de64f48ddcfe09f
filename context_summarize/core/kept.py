"""Which exact values a compaction keeps and loses, for the log and for the user."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from context_summarize.core.entries import Entry
from context_summarize.core.thread import Thread, texts_of
from context_summarize.core.view import View
from context_summarize.notes.forms import spelled_values


@dataclass(frozen=True, slots=True)
class Kept:
    """Counts exact values: names in calls, names and figures in the user's words."""

    kept: int = 0
    lost: int = 0
    """Those that the request showed before the compaction, and does not show after it."""
    examples: tuple[str, ...] = ()
    """Up to three of the lost ones, the newest first."""


def kept(thread: Thread, groups: tuple[int, int], before: View, after: View) -> Kept:
    """Counts the values of the summarised rows that the view before showed, and that the view after it shows.

    Args:
        groups: how many rendered groups each of the two summarises.
    """
    said = _values(before, before.head)
    wanted = {value: None for one in thread.readings(0, groups[0]) for value in one.values if value in said}
    newly = thread.readings(*groups) if groups[0] < groups[1] else []
    wanted |= dict.fromkeys(value for one in newly for value in one.values)
    shown = _values(after, after.entries)
    lost = [value for value in wanted if value not in shown]
    return Kept(len(wanted) - len(lost), len(lost), tuple(reversed(lost[-3:])))


def _values(shown: View, entries: Sequence[Entry]) -> Set[str]:
    """Returns the values in these rows of a view. The numbers in the frames of our own rows are none."""
    texts = [*texts_of(entry.row for entry in entries if entry.origin is not None)]
    texts += [summary.text for summary in shown.texts.values()]
    texts += shown.thread.row["content"].split("\n")[1:-1] if shown.thread else []
    return spelled_values("\n".join(texts))
