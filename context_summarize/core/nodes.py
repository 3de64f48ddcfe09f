"""Nodes, the addresses of summaries; the texts that they stand for; and the tree that leaves grow into. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

SCHEMA_VERSION = "3"


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
    ends_early: bool = False
    """True for a leaf whose end a compaction has chosen, before it was closed."""


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
FRAME_TOKENS = 30
"""Estimate of the frame's tokens for a summary that has no row yet."""


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


def estimated(nodes: Iterable[Node]) -> int:
    """Returns about how many tokens the rows of these nodes take: the lengths that are asked for, and frames."""
    return sum(node.summary_tokens + FRAME_TOKENS for node in nodes)


def derive_summary_tokens(segment_tokens: int) -> int:
    """Returns a sixteenth of a segment, within 64…1,600 tokens; at most half of the segment."""
    return min(1_600, max(64, segment_tokens // 16), segment_tokens // 2)


@dataclass(frozen=True, slots=True)
class Length:
    """The length of segments from one rendered group on, and how their summaries merge.

    Leaves are the digits of a number whose base is `most`.
    """

    from_group: int
    segment_tokens: int
    most: int
    """Of `most` + 1 nodes of a level the oldest `most` become one of the next."""
    room: int
    """Estimated tokens beyond which the two oldest nodes become one, whatever their levels."""

    @property
    def summary_tokens(self) -> int:
        """Tokens of a segment's summary."""
        return derive_summary_tokens(self.segment_tokens)

    def grown(self, nodes: Sequence[Node], leaf: Node, template_hash: str) -> tuple[Node, ...]:
        """Returns the digits once one more leaf has come."""
        found = [*nodes, leaf]
        level = leaf.level
        while len(run := [at for at, node in enumerate(found) if node.level == level]) > self.most:
            oldest = found[run[0] : run[0] + self.most]
            found[run[0] : run[0] + self.most] = [merge_node(oldest, template_hash, self.summary_tokens)]
            level += 1
        return tuple(found)

    def capped(self, nodes: Sequence[Node], template_hash: str) -> tuple[Node, ...]:
        """Returns the nodes to show: the digits, the oldest of them merged until their estimate is within the room."""
        found = [*nodes]
        while len(found) > 1 and estimated(found) > self.room:
            found[:2] = [merge_node(found[:2], template_hash, self.summary_tokens)]
        return tuple(found)


def derive_fan(room: int, summary_tokens: int) -> int:
    """Returns the largest number of neighbours for which a tree of two levels fits into this many tokens."""
    leaf, most = summary_tokens + FRAME_TOKENS, 2
    while True:
        merged = min(MOST_GROWTH, (most + 1) / 2) * summary_tokens + FRAME_TOKENS
        if (most + 1) * (leaf + merged) > room:
            return most
        most += 1
