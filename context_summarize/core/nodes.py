"""Nodes, the addresses of summaries; the summaries; and the view, which says what a request shows of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from context_summarize.messages.rows import JsonRow
from context_summarize.notes import words

Place = tuple[str, int, int]
"""Key and range of a node; see `Node.place`."""


@dataclass(frozen=True, slots=True)
class Node:
    """The address of one summary: the groups that it represents, not its text."""

    key: str
    level: int
    first_group: int
    end_group: int
    summary_tokens: int
    segment_tokens: int = 0
    """At level 0 the length of segments, which decides how tool results were cut; else 0."""
    children: tuple[Node, ...] = ()
    """Empty at level 0."""
    focus: str | None = None

    @property
    def place(self) -> Place:
        """Key and range: segments of equal text share a key, and so a summary, but not a place in the view."""
        return self.key, self.first_group, self.end_group


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of a node, and how it was made."""

    key: str
    level: int
    text: str
    """The model's words, or those of a fallback."""
    tokens: int
    """Size of the text in tokens."""
    source_tokens: int
    fallback: bool = False
    """True if code wrote it because no model did; never stored."""
    provider: str | None = None
    model: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: str | None = None


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with its text and the row that the view shows for it."""

    node: Node
    summary: Summary
    text: str
    """The summary without its lines about rules that the notes quote, or that no message of the user supports."""
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
    places: tuple[words.Place, ...] = ()
    """The places of the sentences that summaries have quoted as rules so far."""
    lost_values: tuple[str, ...] = ()
    """Names and figures that earlier summaries contained and this view does not, the newest last."""
    compactions: int = 0
    """Compactions made so far."""
    hides_system: bool = False
    """True if a factory's prompt replaces stored system rows; no part of the record."""


SCHEMA_VERSION = "1"


def _hashed(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def segment_key(text: str, template_hash: str, summary_tokens: int, focus: str | None = None) -> str:
    """Returns the key of a level-0 summary: a hash of template, length, text and focus, not of the model."""
    extra = () if focus is None else (focus,)
    return _hashed(SCHEMA_VERSION, template_hash, str(summary_tokens), text, *extra)


MOST_GROWTH = 10
"""A merged summary is at most this many times as long as a segment's."""


def merge_node(children: Sequence[Node], template_hash: str, summary_tokens: int) -> Node:
    """Returns the address of the summary that represents these neighbours."""
    level = max(child.level for child in children) + 1
    # A merge is at most half as long as its children: otherwise it makes no room.
    tokens = min(MOST_GROWTH * summary_tokens, sum(child.summary_tokens for child in children) // 2)
    key = _hashed(SCHEMA_VERSION, template_hash, str(tokens), *(child.key for child in children))
    return Node(key, level, children[0].first_group, children[-1].end_group, tokens, 0, tuple(children))


def with_children(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yields the nodes and all nodes below them, each before its children."""
    for node in nodes:
        yield node
        yield from with_children(node.children)


def to_make(nodes: Iterable[Node], known: Callable[[Node], Summary | None]) -> Iterator[Node]:
    """Yields the nodes without known texts; before each one, its children without known texts."""
    for node in nodes:
        if known(node) is None:
            yield from to_make(node.children, known)
            yield node


def next_run(nodes: Sequence[Node], fan_in: int) -> list[Node]:
    """Returns the nodes to merge next: the oldest `fan_in` neighbours of the lowest level that has that many.

    If no level has that many, returns all nodes of the lowest level with two or more, or none. A later merge replaces
    one of fewer than `fan_in`: it takes its children again, and newer nodes. Each merge of a merge loses some content,
    so full runs come first, and of those the lowest level.
    """
    runs = list[list[Node]]()
    start = len(nodes)
    for level, newest_first in groupby(reversed(nodes), key=lambda node: node.level):
        run = list(reversed(list(newest_first)))
        start -= len(run)
        older = nodes[start - 1] if start else None
        if older is not None and older.level == level + 1 and len(older.children) < fan_in:
            run = [*older.children, *run]
        if len(run) > 1:
            runs.append(run[:fan_in])
    return next((run for run in runs if len(run) == fan_in), runs[0] if runs else [])
