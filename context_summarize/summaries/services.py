"""What the parts of one session share: settings, prompts, store, totals, and what is told of each summary."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal

from context_summarize.config import Config
from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import FAILURE, SUMMARY, Outbox
from context_summarize.stores import SummaryStore
from context_summarize.summaries.answer import Answer
from context_summarize.summaries.prompts import PromptSet
from context_summarize.summaries.request import Job
from context_summarize.tokens.measure import Count

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Statistics:
    """A session's summaries up to now. Tokens of calls are as the provider told them, those of the view estimated."""

    messages: int = 0
    """Rows of the history."""
    view_tokens: int = 0
    """Size of the view as it would be served now."""
    budget: int | None = None
    """Tokens that the last request could hold; None before the first."""
    requests: int = 0
    compactions: int = 0
    calls: int = 0
    """Provider calls for summaries, those that failed among them."""
    failed: int = 0
    """Summaries that could not be had."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = None
    """Sum of what the provider says its calls cost; None while it says nothing."""
    from_cache: int = 0
    """Summaries shown that took no call."""
    waits: int = 0
    """Requests that waited for summaries."""
    waited_s: float = 0.0
    longest_wait_s: float = 0.0
    summaries: int = 0
    """Nodes in the view now."""
    fallbacks: int = 0
    """Those of them that no model wrote."""

    def answered(self, answer: Answer) -> None:
        """Add what an answer tells of its usage."""
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens
        if answer.cost is not None:
            self.cost_usd = f"{answer.cost + Decimal(self.cost_usd or 0):f}"

    def waited(self, seconds: float) -> None:
        """Add the waiting time of one request."""
        if seconds > 0:
            self.waits += 1
            self.waited_s += seconds
            self.longest_wait_s = max(self.longest_wait_s, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Made once, when the manager is made."""

    config: Config
    prompts: PromptSet
    store: SummaryStore
    outbox: Outbox
    totals: Statistics
    """Their running sums; what the history and the view tell is filled in for who asks."""
    count: Count
    """Tokens of a text."""
    clock: Callable[[], float]
    """Seconds, for retries and measured waiting."""
    sleep: Callable[[float], Awaitable[None]]


class Teller:
    """Tells of each summary once; of a lasting error once until a summary is made again."""

    def __init__(self, services: Services) -> None:
        self._outbox = services.outbox
        self._totals = services.totals
        self._said: set[str] = set()
        """Kinds of lasting errors that have been told since the last success."""

    def made(self, summary: Summary, seconds: float) -> None:
        """A provider has made a summary."""
        self._said.clear()
        self._outbox.put(
            SUMMARY,
            {
                "key": summary.key,
                "level": summary.level,
                "source_tokens": summary.source_tokens,
                "summary_tokens": summary.tokens,
                "provider": summary.provider,
                "model": summary.model,
                "duration_ms": round(seconds * 1000),
                "attempts": summary.usage.get("attempts", 1),
                "usage": {name: summary.usage.get(name, 0) for name in ("input_tokens", "output_tokens")},
                "cost_usd": summary.cost_usd,
            },
        )

    def failed(self, job: Job, error: SummaryUnavailable) -> None:
        """A summary could not be had, for a reason without secrets; that nobody is asked for a while has been told."""
        if not error.attempts and not error.permanent:
            return
        self._totals.failed += 1
        if error.permanent:
            if error.kind in self._said:
                return
            self._said.add(error.kind)
        log = logger.error if error.permanent else logger.warning
        told = "no summary for key %s, level %d: %s (%s); a fallback summary takes its place"
        log(told, job.key[:12], job.level, error, error.kind)
        self._outbox.put(
            FAILURE,
            {
                "key": job.key,
                "level": job.level,
                "kind": error.kind,
                "error": str(error),
                "attempts": error.attempts,
                "retry_in_s": error.retry_in_s,
            },
        )
