"""Node addresses → texts: from the store, else from the provider, else a digest made by code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from context_summarize.config import Config
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import FAILURE, SUMMARY, Outbox
from context_summarize.facts.directives import (
    directives_room,
    find_directives,
    format_directives,
    merge_directives,
    newest_directives,
)
from context_summarize.facts.extraction import coverage, extract_facts, identifiers
from context_summarize.facts.fact import Fact
from context_summarize.facts.fallback import fallback_text, join_fallbacks
from context_summarize.facts.ledger import build_ledger, format_ledger, merge_facts
from context_summarize.redaction.redactor import build_redactor
from context_summarize.stores.protocol import SummaryStore
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.single_flight import SingleFlight
from context_summarize.summaries.summarizer import Summarizer
from context_summarize.summaries.usage import Totals
from context_summarize.transcript.marks import escape_marks
from context_summarize.transcript.rows import RenderedRow, render_rows

logger = logging.getLogger(__name__)

_MOST_STAND_INS = 512
"""Digests that are kept while nobody can be asked."""


@dataclass(slots=True)
class Tally:
    """What getting a set of texts took."""

    from_cache: int = 0
    made: int = 0
    digests: int = 0


class Texts:
    """Gets the texts of nodes. Never raises for a provider's sake: a digest stands in, and is never stored."""

    def __init__(
        self,
        config: Config,
        store: SummaryStore,
        flight: SingleFlight,
        summarizer: Summarizer,
        outbox: Outbox,
        count: Callable[[str], int],
        clock: Callable[[], float],
        totals: Totals,
    ) -> None:
        self._totals = totals
        self._config = config
        self._clean = build_redactor(config.redact) or str
        self._store = store
        self._flight = flight
        self._summarizer = summarizer
        self._outbox = outbox
        self._count = count
        self._clock = clock
        self._stand_ins: dict[str, Summary] = {}
        """Digests of segments by key, for as long as nobody is to be asked: they are the same each time."""
        self._said: set[str] = set()
        """Kinds of lasting errors that the log has been told of since the last success."""

    async def get(self, node: Node, builder: NodeBuilder, target: Target | None, tally: Tally) -> Summary:
        """The text of one node."""
        found = (await self._store.get([node.key])).get(node.key)
        if found is not None:
            tally.from_cache += 1
            return found
        if target is None or self._config.compaction_strategy == "truncate" or self._summarizer.is_paused(target):
            target = None
        if node.children:
            return await self._merge(node, builder, target, tally)
        if target is None and node.key in self._stand_ins:
            tally.digests += 1
            return self._stand_ins[node.key]
        rows = builder.source(node)
        job = self._leaf_job(node, rows, builder)
        return await self._made(job, target, tally) or self._digest(job, tally, lambda: self._leaf_fallback(job, rows))

    async def summarise(self, node: Node, builder: NodeBuilder, target: Target, tally: Tally) -> Summary:
        """The text of one node, by the provider or from the store.

        Raises:
            SummaryUnavailable: there is none; a digest is made only for what is shown.
        """
        if not self._summarizer.is_paused(target):
            summary = await self.get(node, builder, target, tally)
            if not summary.fallback:
                return summary
        raise SummaryUnavailable("no summary could be made ahead", kind="ahead", attempts=0)

    async def _merge(self, node: Node, builder: NodeBuilder, target: Target | None, tally: Tally) -> Summary:
        hidden = Tally()  # what is shown counts, not what it is made of
        children = await asyncio.gather(*(self.get(child, builder, target, hidden) for child in node.children))
        parts = tuple(
            f"## Summary {at} of {len(children)}\n{escape_marks(child.text)}" for at, child in enumerate(children, 1)
        )
        job = Job(
            node.key,
            node.level,
            parts,
            merge_facts([self._child_facts(child) for child in children]),
            sum(child.tokens for child in children),
            node.summary_tokens,
            directives=self._kept_directives(node, merge_directives([child.directives for child in children])),
        )
        summary = None
        if not any(child.fallback for child in children):
            summary = await self._made(job, target, tally)
        return summary or self._digest(
            job,
            tally,
            lambda: self._merged_fallback(job, children),
        )

    @staticmethod
    def _child_facts(child: Summary) -> tuple[Fact, ...]:
        """The exact values that the child's text holds, which the merge may paraphrase away, and its ledger."""
        held = identifiers(extract_facts([RenderedRow(1, "assistant", None, child.text)]))
        said = {fact.value: replace(fact, said=True) for fact in held}
        return (*said.values(), *(fact for fact in child.ledger if fact.value not in said))

    def _leaf_job(self, node: Node, rows: tuple[RenderedRow, ...], builder: NodeBuilder) -> Job:
        runs = builder.runs(node, rows)
        parts = tuple(render_rows(run) for run in runs)
        facts = extract_facts(rows)
        source = self._count("\n\n".join(parts))
        rules = self._kept_directives(node, find_directives(runs, self._summarizer.directive_words), source)
        return Job(node.key, 0, parts, facts, source, node.summary_tokens, node.focus, rules)

    def _kept_directives(self, node: Node, rules: tuple[str, ...], source_tokens: int | None = None) -> tuple[str, ...]:
        """The newest rules, as many as one node may keep."""
        leaf = node
        while leaf.children:
            leaf = leaf.children[0]
        return newest_directives(rules, directives_room(leaf.summary_tokens, source_tokens), self._count)

    def _leaf_fallback(self, job: Job, rows: tuple[RenderedRow, ...]) -> str:
        return fallback_text(rows, min(job.summary_tokens * 3 // 2, max(16, job.source_tokens // 2)), self._count)

    def _merged_fallback(self, job: Job, children: Sequence[Summary]) -> str:
        """The children's texts, and below them the exact values that stood beside or in what was cut."""
        room = job.summary_tokens
        text = join_fallbacks([child.text for child in children], room * 3 // 5, self._count)
        ledger = format_ledger(build_ledger(job.facts, text, room - self._count(text) - 2, self._count))
        return f"{text}\n\n{ledger}" if ledger else text

    def _digest(self, job: Job, tally: Tally, make: Callable[[], str]) -> Summary:
        tally.digests += 1
        text = make()
        rules = format_directives(job.directives, text)
        shown = f"{text}\n\n{rules}" if rules else text
        made = Summary(
            key=job.key,
            level=job.level,
            text=text,
            ledger=(),
            directives=job.directives,
            tokens=self._count(shown),
            source_tokens=job.source_tokens,
            fallback=True,
            coverage=coverage(job.facts, shown),
        )
        if job.level == 0:
            if len(self._stand_ins) >= _MOST_STAND_INS:
                self._stand_ins.clear()
            self._stand_ins[job.key] = made
        return made

    async def _made(self, job: Job, target: Target | None, tally: Tally) -> Summary | None:
        """A summary by the provider, or None. Whoever asks for the same key meanwhile shares the call."""
        if target is None:
            return None
        try:
            summary = await self._flight.run(job.key, lambda: self._ask(job, target))
        except SummaryUnavailable:
            return None
        tally.made += 1
        return summary

    async def _ask(self, job: Job, target: Target) -> Summary:
        # A second look: another flight may have landed between the first one and the start of this.
        found = (await self._store.get([job.key])).get(job.key)
        if found is not None:
            return found
        started = self._clock()
        try:
            summary = await self._summarizer.make(job, target)
        except SummaryUnavailable as error:
            self._totals.failed += error.attempts > 0
            self._failed(job, error)
            raise
        self._said.clear()
        await self._store.put(summary)
        self._outbox.put(
            SUMMARY,
            {
                "key": job.key,
                "level": job.level,
                "source_tokens": job.source_tokens,
                "summary_tokens": summary.tokens,
                "provider": summary.provider,
                "model": summary.model,
                "duration_ms": round((self._clock() - started) * 1000),
                "attempts": summary.usage.get("attempts", 1),
                "usage": {name: summary.usage.get(name, 0) for name in ("input_tokens", "output_tokens")},
                "cost_usd": summary.cost_usd,
                "coverage": round(summary.coverage, 4),
            },
        )
        return summary

    def _failed(self, job: Job, error: SummaryUnavailable) -> None:
        if not error.attempts:
            return  # nobody was asked; why has been said
        if error.permanent:
            if error.kind in self._said:
                return
            self._said.add(error.kind)
        text = self._clean(str(error))
        log = logger.error if error.permanent else logger.warning
        log(
            "no summary for key %s (level %d): %s: %s; a digest stands for it",
            job.key[:12],
            job.level,
            error.kind,
            text,
        )
        self._outbox.put(
            FAILURE,
            {
                "key": job.key,
                "level": job.level,
                "kind": error.kind,
                "error": text,
                "attempts": error.attempts,
                "retry_in_s": error.retry_in_s,
            },
        )
