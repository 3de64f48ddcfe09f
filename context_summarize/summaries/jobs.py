"""Nodes → jobs: what a summary is made from, with its exact values and user directives; and fallbacks by code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from context_summarize.background import Steps
from context_summarize.core.frames import shown_text
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.facts.directive_sentences import directive_steps
from context_summarize.facts.directives import directives_room, fitting_directives, merge_directives
from context_summarize.facts.extraction import IDENTIFIERS, coverage_steps, extract_facts, fact_steps
from context_summarize.facts.fact import Fact
from context_summarize.facts.fallback import FALLBACK_LINE, fallback_parts, joining_steps
from context_summarize.facts.ledger import ledger_steps
from context_summarize.facts.merged import merge_facts
from context_summarize.summaries.job import Job
from context_summarize.tokens.counter import count_steps
from context_summarize.tokens.measure import Count
from context_summarize.transcript.fences import numbered_parts
from context_summarize.transcript.rows import RenderedRow, render_rows

_MOST_FACTS = 10_000
"""Exact values that are looked for in a summary: the best of a source that holds more."""


def leaf_job(node: Node, builder: NodeBuilder, directive_words: Sequence[str], count: Count) -> Steps[Job]:
    """The job of a level-0 node: its rows read, rendered and redacted, and what code can find in them."""
    rows = yield from builder.source(node)
    yield
    runs = builder.runs(node, rows)
    parts = tuple(render_rows(run) for run in runs)
    yield
    source = yield from count_steps("\n\n".join(parts), count)
    found = yield from directive_steps(runs, tuple(directive_words))
    kept = _kept_directives(node, found, count, source)
    facts = yield from fact_steps(rows)
    reasons = builder.shows_reasoning(node)
    return Job(node.key, 0, parts, facts[:_MOST_FACTS], source, node.summary_tokens, node.focus, kept, rows, reasons)


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


def merge_job(node: Node, children: Sequence[Summary], count: Count) -> Steps[Job]:
    """The job of a node over others, whose texts are there."""
    facts: list[tuple[Fact, ...]] = []
    for child in children:
        facts.append(_child_facts(child))
        yield
    directives = merge_directives([child.directives for child in children])
    return Job(
        node.key,
        node.level,
        numbered_parts([child.text for child in children]),
        merge_facts(facts),
        sum(child.tokens for child in children),
        node.summary_tokens,
        directives=_kept_directives(node, directives, count),
    )


def _child_facts(child: Summary) -> tuple[Fact, ...]:
    """The exact values that the child's text holds, which the merge may paraphrase away, and its ledger.

    In a fallback the text is the user's words: no model has chosen what it holds.
    """
    found = extract_facts([RenderedRow(1, "user" if child.fallback else "assistant", None, child.text)])
    held = [fact for fact in found if fact.told or fact.kind in IDENTIFIERS]
    known = {(fact.kind, fact.value): fact for fact in child.ledger}
    said = {
        (fact.kind, fact.value): replace(known.get((fact.kind, fact.value), fact), said=not child.fallback)
        for fact in held
    }
    return (*said.values(), *(fact for key, fact in known.items() if key not in said))


def _kept_directives(
    node: Node, directives: tuple[str, ...], count: Count, source_tokens: int | None = None
) -> tuple[str, ...]:
    """The directives that one node may keep."""
    leaf = node
    while leaf.children:
        leaf = leaf.children[0]
    return fitting_directives(directives, directives_room(leaf.summary_tokens, source_tokens), count)


def leaf_fallback(job: Job, count: Count) -> Steps[Summary]:
    """The fallback summary of a level-0 job."""
    room = min(job.summary_tokens * 3 // 2, max(16, job.source_tokens // 2))
    text, ledger = yield from fallback_parts(job.rows, room, count, job.facts)
    return with_sizes((yield from _fallback(job, text, ledger, count)), job, count)


def merge_fallback(job: Job, children: Sequence[Summary], count: Count) -> Steps[Summary]:
    """The children's texts, and beside them the exact values of texts and ledgers.

    Texts of models have half of the room. Of fallbacks only the newest has a sixth, or
    what the first line takes: their values stand in the ledgers.
    """
    texts = [child.text for child in children]
    by_code = all(child.fallback for child in children)
    # As a segment's fallback: nobody is asked for prose, so the ledger has the room beside it too.
    most = job.summary_tokens * 3 // 2 if by_code else job.summary_tokens
    room = max(job.summary_tokens, min(most, job.source_tokens // 2))
    share = max(room // 6, min(count(FALLBACK_LINE), room)) if by_code else room // 2
    text = yield from joining_steps(texts[-1:] if by_code else texts, share, count)
    yield
    ledger = yield from ledger_steps(job.facts, text, room - count(text) - 2, count)
    yield
    return (yield from _fallback(job, text, ledger, count))


def _fallback(job: Job, text: str, ledger: tuple[Fact, ...], count: Count) -> Steps[Summary]:
    shown = shown_text(text, job.directives, ledger)
    covered = yield from coverage_steps(job.facts, shown)
    return Summary(
        key=job.key,
        level=job.level,
        text=text,
        ledger=ledger,
        directives=job.directives,
        tokens=count(shown),
        source_tokens=job.source_tokens,
        fallback=True,
        coverage=covered,
    )
