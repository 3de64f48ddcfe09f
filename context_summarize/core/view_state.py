"""The state of a view: which summaries stand in it, where the verbatim part begins; and its record, as JSON data.

A plan is made of the same value: its next view has nodes and no rows yet, because texts may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_summarize.core.history import History
from context_summarize.core.nodes import Node, Summary
from context_summarize.messages.rows import JsonRow

_MOST_LEVELS = 64
"""Of a recorded tree; each level joins nodes of the level below it."""
NotedPlace = tuple[int, int]
"""Of a sentence of the user's: the number of its message, and its place in it."""


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with its text and the row that stands for it in the view."""

    node: Node
    summary: Summary
    text: str
    """What is shown of the summary: without the rules that the notes quote, or that the user never said."""
    row: JsonRow
    tokens: int
    """Size of the row, frame included."""


@dataclass(frozen=True, slots=True)
class ShownNotes:
    """The row of quotations from the summarised part, and its size."""

    text: str
    """The lines, without their frame: what a record keeps."""
    row: JsonRow
    tokens: int


@dataclass(frozen=True, slots=True)
class ViewState:
    """What the last compaction decided. It stays as it is until the next one."""

    nodes: tuple[Node, ...] = ()
    shown: tuple[ShownNode, ...] = ()
    """Their rows; empty in a plan."""
    is_bare: bool = False
    """True where there is no room for summaries: one line stands for them."""
    frontier: int = 0
    """Rendered groups [0, frontier) are represented by nodes and pins."""
    frontier_row: int = 0
    """History rows from here on stand verbatim."""
    shortened: Mapping[int, int] = field(default_factory=dict)
    """History row → tokens kept of it."""
    newest_user: int | None = None
    """Rendered group of the newest user message when the compaction was made."""
    pinned: tuple[int, ...] = ()
    """Rendered groups that stand verbatim because the user has pinned them, in order."""
    rows_at_compaction: int = 0
    """Length of the history at the newest compaction; older rows lose their continuation id."""
    notes: ShownNotes | None = None
    """Stands right before the verbatim part; None where nothing is told."""
    places: tuple[NotedPlace, ...] = ()
    """Of the sentences that summaries have quoted as rules so far."""
    told: tuple[str, ...] = ()
    """Names and figures that earlier summaries told and those of this view do not, the newest last."""
    compactions: int = 0
    """How many have been made."""


# --- its record: the names for rows hold in what a host has saved of the history --------------------------------------


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a session goes on with: a view, and the segment sizes in force."""

    view: ViewState
    """Read from a record, it lacks what is made of texts: the rows of its nodes and that of its notes."""
    sizes: tuple[int, int]
    cut: Mapping[int, str] = field(default_factory=dict)
    """What is shown of those summaries, by the place of their nodes, that are not shown whole."""


def to_data(recorded: Recorded, history: History) -> JsonRow:
    """The record. It knows rows by number, counted over those that hosts save: its hash stands for them."""
    view, notes = recorded.view, recorded.view.notes
    return {
        "nodes": [_node_data(node) for node in view.nodes],
        "is_bare": view.is_bare,
        "frontier": view.frontier,
        "shortened": _shortened_data(view, history),
        "newest_user": view.newest_user,
        "pinned": list(view.pinned),
        "rows": sum(row.rendered for row in history.rows[: view.rows_at_compaction]),
        "notes": notes.text if notes else "",
        "places": [list(place) for place in view.places],
        "told": list(view.told),
        "cut": [[at, item.text] for at, item in enumerate(view.shown) if item.text != item.summary.text],
        "compactions": view.compactions,
        "sizes": list(recorded.sizes),
    }


def from_data(data: Any, history: History, keep_recent: int) -> Recorded | None:
    """What was recorded, in this history; None for a record of another one, or for data of another form.

    A view of a history that went on further is taken up only if it leaves `keep_recent` rows of this one verbatim.
    """
    try:
        frontier, nodes, rows = data["frontier"], tuple(map(_node, data["nodes"])), data["rows"]
        saved = [at for at, row in enumerate(history.rows) if row.rendered]
        is_rewound = rows > len(saved)
        if not _cover(nodes, frontier) or frontier > history.summarisable(keep_recent if is_rewound else 0):
            return None
        text, newest = str(data["notes"]), data["newest_user"]
        view = ViewState(
            nodes=nodes,
            is_bare=data["is_bare"],
            frontier=frontier,
            frontier_row=history.row_after(frontier, len(history) - keep_recent),
            shortened={
                row: keep
                for number, keep, *hashes in data["shortened"]
                for row in saved[number - 1 : number]
                if hashes in ([], [history.hash_of_row(row)])
            },
            newest_user=None if newest is None else int(newest),
            pinned=tuple(map(int, data["pinned"])),
            rows_at_compaction=saved[rows] if rows < len(saved) else len(history),
            notes=ShownNotes(text, {}, 0) if text else None,
            places=tuple((int(number), int(at)) for number, at in data["places"]),
            told=tuple(map(str, data["told"])),
            compactions=int(data["compactions"]),
        )
        segment_tokens, summary_tokens = data["sizes"]
        cut = {int(at): str(text) for at, text in data["cut"]}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return Recorded(view, (segment_tokens, summary_tokens), cut)


def _shortened_data(view: ViewState, history: History) -> list[list[Any]]:
    """Shortened rows by number; those of an open group by their hash as well, for the record's hash lacks them."""
    found, closed = list[list[Any]](), history.closed_rows()
    for row, keep in sorted(view.shortened.items()):
        if (number := history.number_of(row)) is not None:
            found.append([number, keep, history.hash_of_row(row)] if number > closed else [number, keep])
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
    """Whether these nodes tile what lies before the frontier."""
    at = 0
    for node in nodes:
        if node.first_group != at or node.end_group <= at:
            return False
        at = node.end_group
    return at == frontier
