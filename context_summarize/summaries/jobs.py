"""Nodes → jobs: what a summary is made from; and fallbacks by code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.notes.fallback import fallback_text, join_fallbacks
from context_summarize.summaries.job import Job
from context_summarize.tokens.counter import count_long
from context_summarize.tokens.measure import Count
from context_summarize.transcript.fences import numbered_parts
from context_summarize.transcript.rows import render_rows


def leaf_job(node: Node, builder: NodeBuilder, count: Count) -> Job:
    """The job of a level-0 node: its rows read, rendered and redacted."""
    rows = builder.source(node)
    parts = tuple(render_rows(run) for run in builder.runs(node, rows))
    source = count_long("\n\n".join(parts), count)
    return Job(node.key, 0, parts, source, node.summary_tokens, node.focus, rows, builder.shows_reasoning(node))


def with_sizes(summary: Summary, job: Job, count: Count) -> Summary:
    """The summary with a line for each row that was too large to be read whole: how large, and how much is missing."""
    lines = [
        f"[Message {row.number} of these was too large to be read whole: {row.left_out[0]:,} of its "
        f"{row.left_out[1]:,} characters were left out.]"
        for row in job.rows
        if row.left_out
    ]
    if not lines:
        return summary
    note = "\n".join(lines)
    return replace(summary, text=f"{summary.text}\n\n{note}", tokens=summary.tokens + count(f"\n\n{note}"))


def merge_job(node: Node, children: Sequence[Summary]) -> Job:
    """The job of a node over others, whose texts are there."""
    parts = numbered_parts([child.text for child in children])
    return Job(node.key, node.level, parts, sum(child.tokens for child in children), node.summary_tokens)


def leaf_fallback(job: Job, count: Count) -> Summary:
    """The fallback summary of a level-0 job."""
    room = min(job.summary_tokens, max(16, job.source_tokens // 2))
    return with_sizes(_fallback(job, fallback_text(job.rows, room, count), count), job, count)


def merge_fallback(job: Job, children: Sequence[Summary], count: Count) -> Summary:
    """The children's texts, each cut to its share."""
    return _fallback(job, join_fallbacks([child.text for child in children], job.summary_tokens, count), count)


def _fallback(job: Job, text: str, count: Count) -> Summary:
    return Summary(
        key=job.key, level=job.level, text=text, tokens=count(text), source_tokens=job.source_tokens, fallback=True
    )
