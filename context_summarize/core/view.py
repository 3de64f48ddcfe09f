"""The view: which summaries a request shows, which rows it shortens, and where its verbatim part begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from context_summarize.core.nodes import Node, Summary
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.words import Place


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with its text and the row that the view shows for it."""

    node: Node
    summary: Summary
    text: str
    """The shown part of the summary: without rules that the notes quote, or that no message of the user supports."""
    row: JsonRow
    tokens: int
    """Size of the row, frame included."""


@dataclass(frozen=True, slots=True)
class ShownNotes:
    """The row of quotations from the summarised part, and its size."""

    text: str
    """The lines without their frame; the record keeps them."""
    row: JsonRow
    tokens: int


@dataclass(frozen=True, slots=True)
class View:
    """The decisions of the last compaction. It does not change until the next one.

    The view of a plan has nodes and no rows yet, because texts may be missing. The same holds for a view from a
    record, until its texts are looked up.
    """

    nodes: tuple[Node, ...] = ()
    shown: tuple[ShownNode, ...] = ()
    """The rows of the nodes; empty in a plan."""
    is_bare: bool = False
    """True if there is no room for summaries: one line represents them all."""
    frontier: int = 0
    """The rendered groups [0, frontier) are summarised. Some of them may be shown verbatim as well."""
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
    """The row right before the verbatim part; None if it would quote nothing."""
    places: tuple[Place, ...] = ()
    """The places of the sentences that summaries have quoted as rules so far."""
    lost_values: tuple[str, ...] = ()
    """Names and figures that earlier summaries contained and this view does not, the newest last."""
    compactions: int = 0
    """Compactions made so far."""
    hides_system: bool = False
    """True if a factory's prompt replaces stored system rows; no part of the record."""
