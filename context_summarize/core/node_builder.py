"""Cuts a history into segments, and makes nodes: the addresses of segments, rests and merges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from context_summarize.background import copied
from context_summarize.core.history import History
from context_summarize.core.keys import segment_key
from context_summarize.core.nodes import Node, merge_node
from context_summarize.core.rendering import cut_length, render_group
from context_summarize.core.segments import Segment, Segmenter
from context_summarize.redaction import Redact
from context_summarize.transcript.rows import RenderedRow


class NodeBuilder:
    """The segments of one history with their nodes. Both lists grow at their end only.

    Args:
        segment_hash, merge_hash: hashes of the templates, which are part of every key.
        redact: takes secrets out of a text before anything is cut; None = leaves them in.
    """

    def __init__(self, history: History, segment_hash: str, merge_hash: str, redact: Redact | None) -> None:
        self.history = history
        self._segment_hash = segment_hash
        self._merge_hash = merge_hash
        self._redact = redact
        self._segmenter: Segmenter | None = None
        self.cut_by: Segmenter | None = None
        """Of a copy: what cut the original when it was made."""
        self._newest: dict[int, list[RenderedRow]] = {}
        """Rendered groups that are in no segment yet, cut and redacted: their segment's key needs them once more."""
        self.segments: list[Segment] = []
        self.leaves: list[Node] = []
        """The node of each segment."""

    # --- segments ---------------------------------------------------------------------------------------------------

    @property
    def segment_sizes(self) -> tuple[int, int] | None:
        """(segment_tokens, summary_tokens) in force; None before the first view whose budget is known."""
        at = self._segmenter
        return (at.segment_tokens, at.summary_tokens) if at else None

    @property
    def first_group(self) -> int:
        """The rendered group at which cutting began."""
        if self.segments:
            return self.segments[0].first_group
        return self._segmenter.start if self._segmenter else 0

    def start(self, segment_tokens: int, summary_tokens: int, *, first_group: int, first_index: int) -> None:
        """Cut from this rendered group on with these sizes; the first segment gets `first_index`."""
        self.segments, self.leaves, self._newest = [], [], {}
        self._segmenter = Segmenter(segment_tokens, summary_tokens, first_group=first_group, first_index=first_index)

    def ahead(self, regular: int) -> list[Node]:
        """The nodes of the segments from this rendered group on."""
        return self.leaves[bisect_left(self.segments, regular, key=lambda segment: segment.first_group) :]

    def backlog(self) -> int:
        """Characters of the rows in groups that have not been cut, about."""
        if self._segmenter is None:
            return 0
        return self.history.characters_from(self.history.row_of(self._segmenter.next_group))

    def advance(self) -> None:
        """Take in the groups that have closed since the last time."""
        while self._segmenter is not None and self._segmenter.next_group < len(self.history.rendered):
            self._feed(self._segmenter)

    def copy(self) -> NodeBuilder:
        """Its segments as they are now."""
        other = copied(self, "_segmenter")
        other.cut_by = self._segmenter
        return other

    def take(self, ahead: NodeBuilder) -> None:
        """Take over what a copy has cut, unless cutting has begun anew meanwhile."""
        if ahead.cut_by is self._segmenter:
            self._segmenter, self._newest = ahead._segmenter, ahead._newest
            self.segments, self.leaves = ahead.segments, ahead.leaves

    def _feed(self, segmenter: Segmenter) -> None:
        ordinal = segmenter.next_group
        rendered = self._newest[ordinal] = self._render(ordinal, segmenter.segment_tokens)
        user = self.history.rendered_group(ordinal).user
        for segment in segmenter.feed(cut_length(rendered), user):
            self.leaves.append(self._leaf(segment))
            self.segments.append(segment)
            for done in range(segment.first_group, segment.end_group):
                self._newest.pop(done, None)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _leaf(self, segment: Segment) -> Node:
        rendered = self._run(segment.first_group, segment.end_group, segment.segment_tokens)
        key = segment_key(rendered, self._segment_hash, segment.summary_tokens)
        at = (segment.first_group, segment.end_group)
        return Node(key, 0, segment.index, *at, segment.summary_tokens, segment.segment_tokens)

    def rest(self, first_group: int, end_group: int, focus: str | None = None) -> Node | None:
        """The node of a run that is no regular segment; None if a summary would not be smaller than the run."""
        if self._segmenter is None or end_group <= first_group:
            return None
        segment_tokens, summary_tokens = self._segmenter.segment_tokens, self._segmenter.summary_tokens
        focus = self._redact(focus) if focus and self._redact else focus
        rendered = self._run(first_group, end_group, segment_tokens)
        length = cut_length(rendered) // 4
        tokens = min(summary_tokens, max(48, length // 4))
        if length < 2 * tokens:
            return None
        key = segment_key(rendered, self._segment_hash, tokens, focus)
        return Node(key, 0, -1, first_group, end_group, tokens, segment_tokens, (), focus)

    def merge(self, children: Sequence[Node], index: int) -> Node:
        """The node that stands for these neighbours; `index` -1 makes it a rest node."""
        if self._segmenter is None:
            raise ValueError("no segment sizes yet; nodes exist only after start()")
        summary_tokens = self._segmenter.summary_tokens
        return merge_node(children, template_hash=self._merge_hash, summary_tokens=summary_tokens, index=index)

    # --- rows behind them -------------------------------------------------------------------------------------------

    def source(self, node: Node) -> tuple[RenderedRow, ...]:
        """The rendered rows that a level-0 node stands for, cut as its key was made, numbered from 1."""
        return self._run(node.first_group, node.end_group, node.segment_tokens)

    def _run(self, first_group: int, end_group: int, segment_tokens: int) -> tuple[RenderedRow, ...]:
        rows: list[RenderedRow] = []
        for ordinal in range(first_group, end_group):
            rows += self._render(ordinal, segment_tokens)
        # A group of thousands of rows that stands alone is numbered already.
        return tuple(row if row.number == number else replace(row, number=number) for number, row in enumerate(rows, 1))

    def _render(self, ordinal: int, segment_tokens: int) -> list[RenderedRow]:
        sizes = self.segment_sizes
        found = self._newest.get(ordinal) if sizes and sizes[0] == segment_tokens else None
        if found is not None:
            return found
        group = self.history.rendered_group(ordinal)
        rows = self.history.rows
        return render_group(rows, group, number=1, segment_tokens=segment_tokens, redact=self._redact)
