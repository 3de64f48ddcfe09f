"""Makes one summary: finds it in the store, asks the provider for it, or writes a fallback by code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from context_summarize.background import in_thread
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import FAILURE, SUMMARY
from context_summarize.redaction import build_redactor
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.jobs import leaf_fallback, leaf_job, merge_fallback, merge_job, with_sizes
from context_summarize.summaries.services import Services
from context_summarize.summaries.summarizer import Summarizer

logger = logging.getLogger(__name__)


_AHEAD = 2
"""Jobs that are read, or read and waiting for their turn, for each call that may be under way."""


class SummaryMaker:
    """Makes summaries one at a time; who waits for which is not its business."""

    def __init__(self, services: Services, summarizer: Summarizer) -> None:
        self._services = services
        self._summarizer = summarizer
        self._clean = build_redactor(services.config.redact) or str
        self._preparing = asyncio.Lock()
        self._under_way = asyncio.Semaphore(_AHEAD * services.config.max_concurrency)
        self._said: set[str] = set()
        """Kinds of lasting errors that the log has been told of since the last success."""

    async def find(self, key: str) -> Summary | None:
        """The stored summary of a key."""
        return (await self._services.store.get([key])).get(key)

    def may_ask(self, target: Target | None) -> bool:
        """True while a provider is there to be asked, and is not paused."""
        by_code = self._services.config.compaction_strategy == "truncate"
        return target is not None and not by_code and not self._summarizer.is_paused(target)

    async def make(self, node: Node, builder: NodeBuilder, children: Sequence[Summary], target: Target) -> Summary:
        """Ask the provider for a node's summary, and store it.

        Args:
            children: texts of the node's children, in order.

        Raises:
            SummaryUnavailable: there is none.
        """
        async with self._under_way:  # what waits for a provider need not be read before its turn
            job = await self._job(node, builder, children)
            started = self._services.clock()
            try:
                made = await self._summarizer.make(job, target)
            except SummaryUnavailable as error:
                self._services.totals.failed += error.attempts > 0
                self._failed(job, error)
                raise
        summary = with_sizes(made, job, self._services.count)
        self._said.clear()
        await self._services.store.put(summary)
        self._services.outbox.put(
            SUMMARY,
            {
                "key": job.key,
                "level": job.level,
                "source_tokens": job.source_tokens,
                "summary_tokens": summary.tokens,
                "provider": summary.provider,
                "model": summary.model,
                "duration_ms": round((self._services.clock() - started) * 1000),
                "attempts": summary.usage.get("attempts", 1),
                "usage": {name: summary.usage.get(name, 0) for name in ("input_tokens", "output_tokens")},
                "cost_usd": summary.cost_usd,
            },
        )
        return summary

    async def fallback(self, node: Node, builder: NodeBuilder, children: Sequence[Summary]) -> Summary:
        """A node's fallback summary, from its rows or its children's texts. It is never stored."""
        job, count = await self._job(node, builder, children), self._services.count
        if not node.children:
            return leaf_fallback(job, count)
        return merge_fallback(job, children, count)

    async def _job(self, node: Node, builder: NodeBuilder, children: Sequence[Summary]) -> Job:
        count = self._services.count
        async with self._preparing:  # one after the other, so that they ask in the order in which they were started
            if node.children:
                return merge_job(node, children)
            return await in_thread(builder.characters(node), leaf_job, node, builder, count)

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
            "no summary for key %s (level %d): %s: %s; a fallback summary takes its place",
            job.key[:12],
            job.level,
            error.kind,
            text,
        )
        self._services.outbox.put(
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
