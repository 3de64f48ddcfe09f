"""The state of a view: which summaries stand in it, where the verbatim part begins, which rows are shortened.

A plan is made of the same value: its next view has nodes and no rows yet, because texts may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from context_summarize.core.nodes import NamedPlace, Node, Summary
from context_summarize.messages.rows import JsonRow

MOST_AGE = 2
"""Compactions that a row of notes outlives: a row that changes throws away what the provider has cached behind it."""


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with its text and the row that stands for it in the view."""

    node: Node
    summary: Summary
    row: JsonRow
    tokens: int
    """Size of the row, frame included."""


@dataclass(frozen=True, slots=True)
class ShownNotes:
    """The row that tells what code knows of the summarised part, and its size."""

    text: str
    """The lines, without their frame: what a record keeps."""
    row: JsonRow
    tokens: int
    after: int = 0
    """How many nodes stand before it."""
    age: int = 0
    """Compactions that it has outlived."""
    instructions: frozenset[NamedPlace] = frozenset()
    """Those that were known when it was written: another one makes a new row."""


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
    """Stands after the nodes; None where nothing is told."""
    compactions: int = 0
    """How many have been made."""

    def keeps_notes(self, nodes: Sequence[Node], room: int) -> bool:
        """True where the row of notes stays: summaries were only appended, it is not old, and has this room."""
        if self.notes is None or self.notes.age >= MOST_AGE or len(nodes) < self.notes.after:
            return False
        if self.notes.tokens > room:
            return False
        before = self.nodes[: self.notes.after]
        return all(old.place == node.place for old, node in zip(before, nodes, strict=False))
