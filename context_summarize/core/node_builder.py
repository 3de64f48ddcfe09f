"""Makes nodes: the addresses of segments, rests and merges, and the rows behind them."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize.core.history import History
from context_summarize.core.keys import segment_key
from context_summarize.core.nodes import Node, merge_node
from context_summarize.core.rendering import cut_length
from context_summarize.core.segments import Segment
from context_summarize.redaction.redactor import Redact
from context_summarize.transcript.rows import RenderedRow


class NodeBuilder:
    """Makes node addresses: the keys of segments, rests and merges. Keys of segments are remembered."""

    def __init__(self, history: History, segment_hash: str, merge_hash: str, redact: Redact | None) -> None:
        self._history = history
        self._segment_hash = segment_hash
        self._merge_hash = merge_hash
        self._redact = redact
        self._leaves: dict[tuple[int, int], Node] = {}

    def leaf(self, segment: Segment) -> Node:
        """The level-0 node of a segment."""
        at = (segment.first_group, segment.end_group)
        node = self._leaves.get(at)
        if node is None or node.summary_tokens != segment.summary_tokens:
            rendered = self._history.rendered_run(*at, segment.segment_tokens, self._redact)
            key = segment_key(rendered, self._segment_hash, segment.summary_tokens)
            node = Node(key, 0, segment.index, *at, segment.summary_tokens, segment.segment_tokens)
            self._leaves[at] = node
        return node

    def rest(self, first_group: int, end_group: int, focus: str | None = None) -> Node | None:
        """The node of a run that is no regular segment; None where a summary would not be smaller than the run."""
        sizes = self._history.sizes
        if sizes is None or end_group <= first_group:
            return None
        segment_tokens, summary_tokens = sizes
        focus = self._redact(focus) if focus and self._redact else focus
        rendered = self._history.rendered_run(first_group, end_group, segment_tokens, self._redact)
        length = cut_length(rendered) // 4
        tokens = min(summary_tokens, max(48, length // 4))
        if length < 2 * tokens:
            return None
        key = segment_key(rendered, self._segment_hash, tokens, focus)
        return Node(key, 0, -1, first_group, end_group, tokens, segment_tokens, (), focus)

    def merge(self, children: Sequence[Node], index: int) -> Node:
        """The node that stands for these neighbours."""
        sizes = self._history.sizes
        assert sizes is not None, "nodes exist only once the sizes are known"
        return merge_node(children, template_hash=self._merge_hash, summary_tokens=sizes[1], index=index)

    def source(self, node: Node) -> tuple[RenderedRow, ...]:
        """The rendered rows that a level-0 node stands for, cut as its key was made."""
        return self._history.rendered_run(node.first_group, node.end_group, node.segment_tokens, self._redact)

    def runs(self, node: Node, rows: Sequence[RenderedRow]) -> list[tuple[RenderedRow, ...]]:
        """The rendered rows of a level-0 node, one run a group, so that pieces are cut at group boundaries."""
        out: list[tuple[RenderedRow, ...]] = []
        at = 0
        for ordinal in range(node.first_group, node.end_group):
            group = self._history.rendered_group(ordinal)
            size = sum(self._history.rows[index].rendered for index in range(group.start, group.end))
            out.append(tuple(rows[at : at + size]))
            at += size
        return out
