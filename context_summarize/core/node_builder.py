"""Cuts a history into segments, and makes nodes: the addresses of segments and of merges."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from context_summarize.background import copied
from context_summarize.core.groups import cut_length
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, merge_node, segment_key
from context_summarize.redaction import Redact
from context_summarize.transcript.rows import RenderedRow


def derive_segment_tokens(base: int) -> int:
    """The power of two nearest (in log2, ties down) to base / 8, within 512…16,384."""
    exponent = math.log2(max(base, 1) / 8)
    nearest = math.ceil(exponent - 0.5)
    return int(min(16_384, max(512, 2**nearest)))


def derive_summary_tokens(segment_tokens: int) -> int:
    """A sixteenth of a segment, within 64…1,600 tokens; at most half of the segment."""
    return min(1_600, max(64, segment_tokens // 16), segment_tokens // 2)


def next_cut(groups: Sequence[tuple[int, bool]], segment_tokens: int) -> int | None:
    """How many of these groups make the next segment; None while it is not closed. Later groups never change it.

    A segment ends at the first group boundary at or past `segment_tokens`, or at the first user turn within the next
    quarter of that length; it is closed only once that turn, or the whole quarter, stands behind it.

    Args:
        groups: of each rendered group its `cut_length` in bytes, and whether it is a user message.
    """
    size, total, cut, cut_total = segment_tokens * 4, 0, None, 0
    for at, (length, user) in enumerate(groups):
        if cut is not None and user:
            return at
        total += length
        if cut is not None and total - cut_total >= size // 4:
            return cut
        if cut is None and total >= size:
            cut, cut_total = at + 1, total
    return None


class NodeBuilder:
    """The segments of one history as nodes. They grow at their end only.

    Args:
        segment_hash, merge_hash: hashes of the templates, which are part of every key.
        redact: takes secrets out of a text before anything is cut; None = leaves them in.
    """

    def __init__(self, history: History, segment_hash: str, merge_hash: str, redact: Redact | None) -> None:
        self.history = history
        self._segment_hash = segment_hash
        self._merge_hash = merge_hash
        self._redact = redact
        self.segment_sizes: tuple[int, int] | None = None
        """(segment_tokens, summary_tokens) in force; None before the first view whose budget is known."""
        self.first_group = 0
        """The rendered group at which cutting began."""
        self.leaves: list[Node] = []
        """The node of each segment."""
        self._uncut: list[tuple[int, bool]] = []
        """Length of each rendered group that is in no segment yet, and whether it is a user message."""
        self._rendered: list[list[RenderedRow]] = []
        """These groups, cut and redacted: their segment's key needs them once more."""
        self.begun = object()
        """Another one each time that cutting begins anew: nodes of an earlier cutting do not tile with later ones."""

    def start(self, segment_tokens: int, summary_tokens: int, first_group: int) -> None:
        """Cut from this rendered group on with these sizes."""
        self.segment_sizes, self.first_group = (segment_tokens, summary_tokens), first_group
        self.leaves, self._uncut, self._rendered, self.begun = [], [], [], object()

    def go_on_from(self, group: int) -> None:
        """Have a segment begin at this rendered group: cut anew unless one does, or one ends there."""
        if self.segment_sizes and group not in (self.first_group, *(leaf.end_group for leaf in self.leaves)):
            self.start(*self.segment_sizes, group)

    def ahead(self, group: int) -> list[Node]:
        """The nodes of the segments from this rendered group on; none where it lies within a segment."""
        found = self.leaves[bisect_left(self.leaves, group, key=lambda leaf: leaf.first_group) :]
        return found if found and found[0].first_group == group else []

    @property
    def _next_start(self) -> int:
        """The first rendered group that is in no segment."""
        return self.leaves[-1].end_group if self.leaves else self.first_group

    def backlog(self) -> int:
        """Characters of the rows in groups that have not been taken in, about."""
        next_group = self._next_start + len(self._uncut)
        return self.history.characters_from(self.history.row_of(next_group)) if self.segment_sizes else 0

    def advance(self) -> None:
        """Take in the groups that have closed since the last time."""
        if self.segment_sizes is None:
            return
        segment_tokens, summary_tokens = self.segment_sizes
        for ordinal in range(self._next_start + len(self._uncut), len(self.history.rendered)):
            self._rendered.append(self._render(ordinal, segment_tokens))
            self._uncut.append((cut_length(self._rendered[-1]), self.history.rendered_group(ordinal).user))
        while (count := next_cut(self._uncut, segment_tokens)) is not None:
            first, end = self._next_start, self._next_start + count
            key = segment_key(_numbered(self._rendered[:count]), self._segment_hash, summary_tokens)
            self.leaves.append(Node(key, 0, first, end, summary_tokens, segment_tokens))
            del self._uncut[:count], self._rendered[:count]

    def copy(self) -> NodeBuilder:
        """Its segments as they are now, for a thread that takes in more; rows may be added to the history meanwhile."""
        return copied(self)

    def take(self, ahead: NodeBuilder) -> None:
        """Take over what a copy has cut, unless cutting has begun anew meanwhile."""
        if ahead.begun is self.begun:
            vars(self).update(vars(ahead))

    def remainder(self, first_group: int, end_group: int, focus: str | None = None) -> Node | None:
        """The node of a segment that ends before it is full; None if a summary would not be smaller than its rows."""
        if self.segment_sizes is None or end_group <= first_group:
            return None
        segment_tokens, summary_tokens = self.segment_sizes
        focus = self._redact(focus) if focus and self._redact else focus
        rendered = self._run(first_group, end_group, segment_tokens)
        length = cut_length(rendered) // 4
        tokens = min(summary_tokens, max(48, length // 4))
        if length < 2 * tokens:
            return None
        key = segment_key(rendered, self._segment_hash, tokens, focus)
        return Node(key, 0, first_group, end_group, tokens, segment_tokens, (), focus)

    def merge(self, children: Sequence[Node]) -> Node:
        """The node that stands for these neighbours."""
        if self.segment_sizes is None:
            raise ValueError("no segment sizes yet; nodes exist only after start()")
        return merge_node(children, self._merge_hash, self.segment_sizes[1])

    def source(self, node: Node) -> tuple[RenderedRow, ...]:
        """The rendered rows that a level-0 node stands for, cut as its key was made, numbered from 1."""
        return self._run(node.first_group, node.end_group, node.segment_tokens)

    def _run(self, first_group: int, end_group: int, segment_tokens: int) -> tuple[RenderedRow, ...]:
        return _numbered([self._render(ordinal, segment_tokens) for ordinal in range(first_group, end_group)])

    def _render(self, ordinal: int, segment_tokens: int) -> list[RenderedRow]:
        group = self.history.rendered_group(ordinal)
        return self.history.render(group, segment_tokens=segment_tokens, redact=self._redact)


def _numbered(groups: Sequence[Sequence[RenderedRow]]) -> tuple[RenderedRow, ...]:
    """The rows of a segment, numbered from 1."""
    rows = [row for group in groups for row in group]
    # A group of thousands of rows that stands alone is numbered already.
    return tuple(row if row.number == number else replace(row, number=number) for number, row in enumerate(rows, 1))
