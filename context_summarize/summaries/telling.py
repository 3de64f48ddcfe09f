"""What events, totals and the log are told of a summary that was made, and of one that could not be had."""

from __future__ import annotations

import logging

from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import FAILURE, SUMMARY
from context_summarize.redaction import build_redactor
from context_summarize.summaries.request import Job
from context_summarize.summaries.services import Services

logger = logging.getLogger(__name__)


class Teller:
    """Tells of each summary once; of a lasting error once until a summary is made again."""

    def __init__(self, services: Services) -> None:
        self._outbox = services.outbox
        self._totals = services.totals
        self._clean = build_redactor(services.config.redact) or str
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
        """A summary could not be had; where nobody was asked, why has been told."""
        if not error.attempts:
            return
        self._totals.failed += 1
        if error.permanent:
            if error.kind in self._said:
                return
            self._said.add(error.kind)
        text = self._clean(str(error))
        log = logger.error if error.permanent else logger.warning
        told = "no summary for key %s (level %d): %s: %s; a fallback summary takes its place"
        log(told, job.key[:12], job.level, error.kind, text)
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
