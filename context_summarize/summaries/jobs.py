"""Nodes → jobs: what a summary is made from, who is asked for it, and summaries that code writes instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.notes.fallback import fallback_text, join_fallbacks
from context_summarize.tokens.measure import Count
from context_summarize.transcript.escaping import cut_middle, numbered
from context_summarize.transcript.rows import RenderedRow, render_rows

_QUICKLY_READ = 1_024
"""`segment_tokens` up to which a segment is read in a few milliseconds."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to make."""

    key: str
    level: int
    text: str
    """The source: rendered rows at level 0, the texts of the children under headings above."""
    source_tokens: int
    """Its size; of the children, that of their texts."""
    summary_tokens: int
    focus: str | None = None
    rows: tuple[RenderedRow, ...] = ()
    """The rendered rows behind a job of level 0."""
    count: int = 1
    """Texts that are joined."""
    left_out: tuple[int, int] | None = None
    """Characters that were left out because the source is too large for who summarises it, and all its characters."""

    def cut_to(self, tokens: int) -> Job:
        """The job with the middle of its source cut out where that is longer than this."""
        if self.source_tokens <= tokens:
            return self
        size = len(self.text.encode("utf-8", "surrogatepass"))
        text = cut_middle(self.text, size * tokens // self.source_tokens)
        whole = len(self.text) if self.left_out is None else self.left_out[1]
        return replace(self, text=text, source_tokens=tokens, left_out=(whole - len(text), whole))


@dataclass(frozen=True, slots=True)
class Target:
    """The provider that is asked."""

    provider: Any
    name: str
    model: str | None = None
    window: int | None = None
    """Tokens that one request may hold; None = unknown."""
    output: int | None = None
    """Tokens that one answer may hold at most; None = unknown."""


async def read(
    make: Callable[[Node, NodeBuilder, Sequence[Summary], Count], T],
    node: Node,
    builder: NodeBuilder,
    children: Sequence[Summary],
    count: Count,
) -> T:
    """What `make_job` or `fallback` makes: in a thread where that may take longer than a few milliseconds."""
    if node.segment_tokens <= _QUICKLY_READ:
        return make(node, builder, children, count)
    return await asyncio.to_thread(make, node, builder, children, count)


def make_job(node: Node, builder: NodeBuilder, children: Sequence[Summary], count: Count) -> Job:
    """What a node is summarised from: its rows read, rendered and redacted, or the texts of its children."""
    if node.children:
        text, size = numbered([child.text for child in children]), sum(child.tokens for child in children)
        return Job(node.key, node.level, text, size, node.summary_tokens, count=len(children))
    rows = builder.source(node)
    text = render_rows(rows)
    return Job(node.key, 0, text, count(text), node.summary_tokens, node.focus, rows)


def fallback(node: Node, builder: NodeBuilder, children: Sequence[Summary], count: Count) -> Summary:
    """A node's fallback summary, from its rows or from its children's texts, each cut to its share."""
    job = make_job(node, builder, children, count)
    if node.children:
        text = join_fallbacks([child.text for child in children], job.summary_tokens, count)
    else:
        text = fallback_text(job.rows, min(job.summary_tokens, max(16, job.source_tokens // 2)), count)
    text = with_sizes(text, job)
    return Summary(
        key=job.key, level=job.level, text=text, tokens=count(text), source_tokens=job.source_tokens, fallback=True
    )


def with_sizes(text: str, job: Job) -> str:
    """The text of a summary with a line for all that could not be read whole: how large, and how much is missing."""
    lines = [
        f"[Message {row.number} of these was too large to be read whole: {row.left_out[0]:,} of its "
        f"{row.left_out[1]:,} characters were left out.]"
        for row in job.rows
        if row.left_out
    ]
    if job.left_out:
        left_out, size = job.left_out
        lines.append(f"[All this was too large to be read whole: {left_out:,} of {size:,} characters were left out.]")
    return "\n\n".join((text, "\n".join(lines))) if lines else text
