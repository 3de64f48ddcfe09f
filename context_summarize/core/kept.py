"""A view with its thread, and which exact values a compaction keeps and loses."""

from __future__ import annotations

from dataclasses import dataclass, replace

from context_summarize.core.frames import show_node, show_thread
from context_summarize.core.log import Log
from context_summarize.core.nodes import View
from context_summarize.core.render import render
from context_summarize.core.thread import Thread, texts_of
from context_summarize.notes.forms import spelled_values
from context_summarize.transcript.escaping import Frame


@dataclass(frozen=True, slots=True)
class Kept:
    """Counts exact values: names in calls, names and figures in the user's words."""

    kept: int = 0
    lost: int = 0
    """Those that the request showed before the compaction, and does not show after it."""
    examples: tuple[str, ...] = ()
    """Up to three of the lost ones, the newest first."""


def with_thread(thread: Thread, log: Log, view: View, room: int, frame: Frame) -> View:
    """Returns the view with a thread of at most `room` tokens, and with its summaries as they stand beside it."""
    rows = (entry.origin for entry in render(log, view).entries)
    numbers = {log.number_of(row) for row in rows if row is not None and row not in view.shortened}
    summaries = [item.summary.text for item in view.shown]
    text = thread.text(view.frontier, room, {number for number in numbers if number is not None}, summaries)
    nodes = [(item.node, item.summary) for item in view.shown]
    parts = [thread.summary(one.text, node.first_group, node.end_group, text) for node, one in nodes]
    shown = tuple(show_node(log, *one, frame, part) for one, part in zip(nodes, parts, strict=True))
    return replace(view, shown=shown, notes=show_thread(log, text, view.frontier) if text else None)


def kept(thread: Thread, log: Log, before: View, view: View) -> Kept:
    """Counts the values of the summarised rows that the view before showed, and that the new view shows."""
    earlier, rows = render(log, before), render(log, view).entries
    old = [entry.row for entry in earlier.entries if entry.origin is None or entry.origin < before.frontier_row]
    shown = spelled_values("\n".join(texts_of(old)))
    wanted = {value: None for one in thread.readings(0, before.frontier) for value in one.values if value in shown}
    newly = thread.readings(before.frontier, view.frontier)
    wanted |= dict.fromkeys(value for one in newly for value in one.values)
    shown = spelled_values("\n".join(texts_of(entry.row for entry in rows)))
    lost = [value for value in wanted if value not in shown]
    return Kept(len(wanted) - len(lost), len(lost), tuple(reversed(lost[-3:])))
