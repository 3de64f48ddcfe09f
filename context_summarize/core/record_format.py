"""The record of a view, as JSON data. It numbers the rows that hosts save, so that it fits the history they restore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, ShownNotes, View
from context_summarize.messages.rows import JsonRow

_MOST_LEVELS = 64
"""Levels of a recorded tree; each level joins nodes of the level below it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A view to resume from, and its segment sizes."""

    view: View
    """As read from a record, it has no rows for its nodes and its notes yet."""
    sizes: tuple[int, int]
    cut: Mapping[int, str] = field(default_factory=dict)
    """The shown text of each summary that is not shown whole, by the index of its node."""


def to_data(view: View, sizes: tuple[int, int], log: Log) -> JsonRow:
    """Returns the record of a view. It refers to rows by number; only rows that hosts save are counted."""
    return {
        "nodes": [_node_data(node) for node in view.nodes],
        "is_bare": view.is_bare,
        "frontier": view.frontier,
        "shortened": _shortened_data(view, log),
        "newest_user": view.newest_user,
        "pinned": list(view.pinned),
        "rows": sum(row.rendered for row in log.rows[: view.rows_at_compaction]),
        "resumed": sum(row.rendered for row in log.rows[: view.rows_at_resume]),
        "notes": view.notes.text if view.notes else "",
        "cut": [[at, item.text] for at, item in enumerate(view.shown) if item.text != item.summary.text],
        "compactions": view.compactions,
        "sizes": list(sizes),
    }


def from_data(data: Any, log: Log, keep_recent: int) -> Recorded | None:
    """Returns the recorded view for this log; None for a record of another log, or for data of another form.

    A view of a longer history is accepted only if it leaves `keep_recent` rows of this one verbatim.
    """
    try:
        frontier, nodes, rows = data["frontier"], tuple(map(_node, data["nodes"])), data["rows"]
        resumed = int(data.get("resumed", 0))
        saved = [at for at, row in enumerate(log.rows) if row.rendered]
        is_rewound = rows > len(saved)
        if not _cover(nodes, frontier) or frontier > log.summarisable(keep_recent if is_rewound else 0):
            return None
        text, newest = str(data["notes"]), data["newest_user"]
        view = View(
            nodes=nodes,
            is_bare=data["is_bare"],
            frontier=frontier,
            frontier_row=log.row_after(frontier, len(log) - keep_recent),
            shortened={
                saved[number - 1]: keep
                for number, keep, *hashes in data["shortened"]
                if 0 < number <= len(saved) and hashes in ([], [log.hash_of_row(saved[number - 1])])
            },
            newest_user=None if newest is None else int(newest),
            pinned=tuple(map(int, data["pinned"])),
            rows_at_compaction=saved[rows] if rows < len(saved) else len(log),
            rows_at_resume=saved[resumed] if resumed < len(saved) else len(log),
            notes=ShownNotes(text, {}, 0) if text else None,
            compactions=int(data["compactions"]),
        )
        segment_tokens, summary_tokens = data["sizes"]
        cut = {int(at): str(text) for at, text in data["cut"]}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return Recorded(view, (segment_tokens, summary_tokens), cut)


def _shortened_data(view: View, log: Log) -> list[list[Any]]:
    """Returns shortened rows by number. Rows of an open group have their hash too: the record's hash lacks them."""
    found, closed = list[list[Any]](), log.closed_rendered_rows
    for row, keep in sorted(view.shortened.items()):
        if (number := log.number_of(row)) is not None:
            found.append([number, keep, log.hash_of_row(row)] if number > closed else [number, keep])
    return found


def _node_data(node: Node) -> list[Any]:
    below = [_node_data(child) for child in node.children]
    groups, sizes = (node.first_group, node.end_group), (node.summary_tokens, node.segment_tokens)
    return [node.key, node.level, *groups, *sizes, below, node.focus]


def _node(data: Any, above: int = _MOST_LEVELS) -> Node:
    key, level, first_group, end_group, summary_tokens, segment_tokens, below, focus = data
    if type(level) is not int or not 0 <= level < above:
        raise ValueError(f"a node below level {above} has level {level!r}")
    below = tuple(_node(child, level) for child in below)
    return Node(key, level, first_group, end_group, summary_tokens, segment_tokens, below, focus)


def _cover(nodes: Iterable[Node], frontier: int) -> bool:
    """Returns True if these nodes cover all groups before the frontier, without gaps and overlaps."""
    at = 0
    for node in nodes:
        if node.first_group != at or node.end_group <= at:
            return False
        at = node.end_group
    return at == frontier
