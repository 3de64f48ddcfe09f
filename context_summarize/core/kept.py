"""A view with its thread, and which exact values a compaction keeps and loses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from context_summarize.core.entries import Entry
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
    shown = _values(before, render(log, before).head)
    wanted = {value: None for one in thread.readings(0, before.frontier) for value in one.values if value in shown}
    newly = thread.readings(before.frontier, view.frontier)
    wanted |= dict.fromkeys(value for one in newly for value in one.values)
    shown = _values(view, render(log, view).entries)
    lost = [value for value in wanted if value not in shown]
    return Kept(len(wanted) - len(lost), len(lost), tuple(reversed(lost[-3:])))


def _values(view: View, entries: Iterable[Entry]) -> set[str]:
    """Returns the values in these rows of a view, in its summaries and its thread. Numbers in frames are none."""
    own = [item.text for item in view.shown] + ([view.notes.text] if view.notes else [])
    return spelled_values("\n".join([*own, *texts_of(entry.row for entry in entries if entry.origin is not None)]))
