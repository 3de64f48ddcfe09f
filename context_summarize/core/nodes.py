"""Nodes: the addresses of summaries, and the summaries themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from context_summarize.transcript.rendered import RenderedRow, render_rows

Place = tuple[str, int, int]
"""Key and range of a node; see `Node.place`."""


@dataclass(frozen=True, slots=True)
class Node:
    """The address of one summary: what it stands for, not its text."""

    key: str
    level: int
    first_group: int
    end_group: int
    summary_tokens: int
    segment_tokens: int = 0
    """At level 0 the segment length in force, which decides how long tool results were cut; else 0."""
    children: tuple[Node, ...] = ()
    """Empty at level 0."""
    focus: str | None = None

    @property
    def place(self) -> Place:
        """Key and range: segments of equal text share a key, and so a summary, but not a place in the view."""
        return self.key, self.first_group, self.end_group


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of a node, with what is known of how it was made."""

    key: str
    level: int
    text: str
    """The model's words, or those of a fallback."""
    tokens: int
    """Size of the text in tokens."""
    source_tokens: int
    fallback: bool = False
    """Made by code because no model summary could be had; never stored."""
    provider: str | None = None
    model: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: str | None = None


SCHEMA_VERSION = "1"


def _hashed(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def segment_key(
    rendered: Sequence[RenderedRow], template_hash: str, summary_tokens: int, focus: str | None = None
) -> str:
    """Returns the key of a level-0 summary: nothing but what its text may depend on."""
    extra = () if focus is None else (focus,)
    return _hashed(SCHEMA_VERSION, template_hash, str(summary_tokens), render_rows(rendered), *extra)


MOST_GROWTH = 10
"""A merged summary is at most so many times as long as a segment's."""


def merge_node(children: Sequence[Node], template_hash: str, summary_tokens: int) -> Node:
    """Returns the address of the summary that stands for these neighbours."""
    level = max(child.level for child in children) + 1
    # A merge halves what it joins, or it would make no room.
    tokens = min(MOST_GROWTH * summary_tokens, sum(child.summary_tokens for child in children) // 2)
    key = _hashed(SCHEMA_VERSION, template_hash, str(tokens), *(child.key for child in children))
    return Node(key, level, children[0].first_group, children[-1].end_group, tokens, 0, tuple(children))


def with_children(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yields the nodes and all that stand below them, each before its children."""
    for node in nodes:
        yield node
        yield from with_children(node.children)


def to_make(nodes: Iterable[Node], known: Callable[[Node], Summary | None]) -> Iterator[Node]:
    """Yields the nodes, and those below them, whose texts are not known: each after those that it is joined from."""
    for node in nodes:
        if known(node) is None:
            yield from to_make(node.children, known)
            yield node


def next_run(nodes: Sequence[Node], fan_in: int) -> list[Node]:
    """The oldest `fan_in` neighbours of the lowest level that has as many, else all of the lowest; empty without two.

    A merge of fewer grows: it is made anew of what it was joined from, and of the nodes after it. What is joined again
    and again loses something every time, so that only whole ones are joined further, and the lowest level goes first.
    """
    runs, at = list[list[Node]](), len(nodes)
    for level, newest_first in groupby(reversed(nodes), key=lambda node: node.level):
        run = [*newest_first][::-1]
        at -= len(run)
        older = nodes[at - 1] if at else None
        if older is not None and older.level == level + 1 and len(older.children) < fan_in:
            run = [*older.children, *run]
        if len(run) > 1:
            runs.append(run[:fan_in])
    return next((run for run in runs if len(run) == fan_in), runs[0] if runs else [])
