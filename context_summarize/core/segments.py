"""Cuts a log into segments, and makes a node for each."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from context_summarize.core import parts
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, segment_key
from context_summarize.transcript.groups import PartRow
from context_summarize.transcript.part import stable_length
from context_summarize.transcript.rendered import RenderedRow

_LEAST = 512
"""Tokens of the shortest segments, also in the smallest windows."""


def derive_segment_tokens(base: int) -> int:
    """Returns the power of two nearest (in log2, ties down) to base / 8, within 512…16,384."""
    exponent = math.log2(max(base, 1) / 8)
    nearest = math.ceil(exponent - 0.5)
    return int(min(16_384, max(_LEAST, 2**nearest)))


def derive_summary_tokens(segment_tokens: int) -> int:
    """Returns a sixteenth of a segment, within 64…1,600 tokens; at most half of the segment."""
    return min(1_600, max(64, segment_tokens // 16), segment_tokens // 2)


def is_too_long(segment_tokens: int, base: int) -> bool:
    """Returns True for segments that are too long for a base which has become smaller."""
    return segment_tokens > max(_LEAST, base / 4)


def next_cut(groups: Sequence[tuple[int, bool]], segment_tokens: int) -> int | None:
    """Returns how many of these groups make the next segment; None while it is not closed.

    A segment ends at the first group boundary at or past `segment_tokens`. If a user turn begins within the next
    quarter of that length, it ends there instead. It is closed only once that turn or the whole quarter has come. So
    later groups never move the cut.

    Args:
        groups: for each rendered group its `stable_length` in bytes, and True for a user message.
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


@dataclass(frozen=True, slots=True)
class Cutting:
    """The hashes of the templates, which are parts of the keys, and the lengths of segments and of their summaries."""

    segment_hash: str
    merge_hash: str
    segment_tokens: int = 0
    summary_tokens: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        """(segment_tokens, summary_tokens)"""
        return self.segment_tokens, self.summary_tokens


class Segments:
    """The segments of one log as nodes, from `first_group` on. They grow at their end only."""

    def __init__(self, log: Log, cutting: Cutting, first_group: int) -> None:
        self.log, self.cutting, self.first_group = log, cutting, first_group
        self.leaves: list[Node] = []
        """The node of each segment."""
        self._rendered: dict[int, tuple[list[PartRow], int]] = {}
        """The rows of groups that are in no segment yet, redacted, and their lengths."""

    def with_boundary_at(self, group: int) -> Segments:
        """Returns these segments if one begins at this rendered group, else new segments that begin there."""
        if group == self.first_group or any(leaf.end_group == group for leaf in self.leaves):
            return self
        return Segments(self.log, self.cutting, group)

    def from_group(self, group: int) -> list[Node]:
        """Returns the nodes of the segments from this rendered group on; none if it lies within a segment."""
        found = self.leaves[bisect_left(self.leaves, group, key=lambda leaf: leaf.first_group) :]
        return found if found and found[0].first_group == group else []

    def _uncut(self) -> range:
        """Returns the closed rendered groups that are in no segment yet."""
        return range(self.leaves[-1].end_group if self.leaves else self.first_group, len(self.log.rendered))

    def backlog(self) -> int:
        """Returns about how many characters `render_ahead` must read."""
        unread = (ordinal for ordinal in self._uncut() if ordinal not in self._rendered)
        first = next(unread, len(self.log.rendered))
        return self.log.characters_from(self.log.row_of(first))

    def render_ahead(self) -> None:
        """Renders the groups that have closed since the last time; a thread may do it."""
        for ordinal in self._uncut():
            self._rendering(ordinal)
            self.log.hash_of(ordinal)  # the record of a compaction needs the hashes

    def _rendering(self, ordinal: int) -> tuple[list[PartRow], int]:
        found = self._rendered.get(ordinal)
        if found is None:
            rows = parts.read(self.log, ordinal, self.cutting.segment_tokens)
            found = self._rendered[ordinal] = rows, stable_length(rows, self.cutting.segment_tokens)
        return found

    def take_in(self) -> None:
        """Cuts the groups that have closed since the last time into segments."""
        segment_tokens, summary_tokens = self.cutting.sizes
        groups = self._uncut()
        first = groups.start
        uncut = [(self._rendering(ordinal)[1], self.log.rendered_group(ordinal).user) for ordinal in groups]
        while (count := next_cut(uncut, segment_tokens)) is not None:
            end = first + count
            text = parts.text_of(self.log, first, [self._rendering(at)[0] for at in range(first, end)], segment_tokens)
            key = segment_key(text, self.cutting.segment_hash, summary_tokens)
            self.leaves.append(Node(key, 0, first, end, summary_tokens, segment_tokens))
            del uncut[:count]
            first = end
        for ordinal in [*self._rendered]:  # a copy, because a thread may be adding to it
            if ordinal < first:
                del self._rendered[ordinal]

    def remainder(self, first_group: int, end_group: int, focus: str | None = None) -> Node | None:
        """Returns a segment that ends before it is full; None if a summary would take more than half of its length."""
        if end_group <= first_group:
            return None
        segment_tokens, summary_tokens = self.cutting.sizes
        focus = self.log.redact(focus) if focus and self.log.redact else focus
        groups = [parts.read(self.log, at, segment_tokens) for at in range(first_group, end_group)]
        length = sum(stable_length(group, segment_tokens) for group in groups) // 4
        tokens = min(summary_tokens, max(48, length // 4))
        if length < 2 * tokens:
            return None
        text = parts.text_of(self.log, first_group, groups, segment_tokens)
        key = segment_key(text, self.cutting.segment_hash, tokens, focus)
        return Node(key, 0, first_group, end_group, tokens, segment_tokens, (), focus)


def source_text(log: Log, node: Node) -> str:
    """Returns the text that a level-0 node represents, as in its key."""
    groups = [parts.read(log, at, node.segment_tokens) for at in range(node.first_group, node.end_group)]
    return parts.text_of(log, node.first_group, groups, node.segment_tokens)


def source(log: Log, node: Node) -> tuple[RenderedRow, ...]:
    """Returns the rendered rows that a level-0 node represents, numbered from 1; a fallback quotes from them."""
    groups = map(log.rendered_group, range(node.first_group, node.end_group))
    return _numbered([log.render(group, segment_tokens=node.segment_tokens, redacted=True) for group in groups])


def _numbered(groups: Sequence[Sequence[RenderedRow]]) -> tuple[RenderedRow, ...]:
    """Returns the rows of a segment, numbered from 1."""
    rows = [row for group in groups for row in group]
    # A row with the right number is not copied: a segment of one group may have thousands.
    return tuple(row if row.number == number else replace(row, number=number) for number, row in enumerate(rows, 1))
