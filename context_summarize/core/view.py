"""The view: which summaries a request shows, which rows it shortens, and where its verbatim part begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from context_summarize.core.nodes import Node, Summary
from context_summarize.messages.rows import JsonRow

NotedPlace = tuple[int, int]
"""Of a sentence of the user's: the number of its message, and its place in it."""


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with its text and the row that the view shows for it."""

    node: Node
    summary: Summary
    text: str
    """The shown part of the summary: without the rules that the notes quote, or that the user never said."""
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
class View:
    """The decisions of the last compaction. It stays as it is until the next one.

    A plan is made of the same value: its next view has nodes and no rows yet, because texts may be missing. So has one
    that is read from a record, until its texts are looked up.
    """

    nodes: tuple[Node, ...] = ()
    shown: tuple[ShownNode, ...] = ()
    """Their rows; empty in a plan."""
    is_bare: bool = False
    """True where there is no room for summaries: one line represents them."""
    frontier: int = 0
    """Rendered groups [0, frontier) are represented by nodes and pins."""
    frontier_row: int = 0
    """History rows from here on are verbatim."""
    shortened: Mapping[int, int] = field(default_factory=dict)
    """History row → tokens kept of it."""
    newest_user: int | None = None
    """Rendered group of the newest user message when the compaction was made."""
    pinned: tuple[int, ...] = ()
    """Rendered groups that are verbatim because the user has pinned them, in order."""
    rows_at_compaction: int = 0
    """Length of the history at the newest compaction; older rows lose their continuation id."""
    notes: ShownNotes | None = None
    """Right before the verbatim part; None where nothing is quoted."""
    places: tuple[NotedPlace, ...] = ()
    """Of the sentences that summaries have quoted as rules so far."""
    told: tuple[str, ...] = ()
    """Names and figures that earlier summaries told and those of this view do not, the newest last."""
    compactions: int = 0
    """How many have been made."""
    hides_system: bool = False
    """True where a factory's prompt takes the place of stored system rows; no part of the record."""
