"""The settings, prompts, store and totals that the parts of one session share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal

from context_summarize.config import Config
from context_summarize.events import Outbox
from context_summarize.redaction import Redact
from context_summarize.stores import SummaryStore
from context_summarize.summaries.answer import Answer
from context_summarize.summaries.prompts import PromptSet
from context_summarize.tokens.measure import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a request in tokens, as the provider counts."""

    system: int = 0
    """The system prompt, with all system rows of the host."""
    tools: int = 0
    """The tools, as far as the provider's counts have shown them."""
    summaries: int = 0
    thread: int = 0
    before: int = 0
    """Messages that are shown whole before or between the summaries."""
    after: int = 0
    """Messages after the summaries."""


@dataclass(slots=True, kw_only=True)
class Statistics:
    """The figures of a session so far. Tokens of calls come from the provider; tokens of the view are estimates."""

    messages: int = 0
    """Rows of the history."""
    view_tokens: int = 0
    """Size of the view as it would be sent now."""
    parts: Parts = Parts()
    """What its parts take."""
    budget: int | None = None
    """Tokens that the last request could hold; None before the first."""
    requests: int = 0
    compactions: int = 0
    calls: int = 0
    """Provider calls for summaries, including those that failed."""
    failed: int = 0
    """Summaries that could not be made."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = None
    """Sum of the costs that the provider reports; None if it reports none."""
    from_cache: int = 0
    """Shown summaries that took no call."""
    waits: int = 0
    """Requests that waited for summaries."""
    waited_s: float = 0.0
    longest_wait_s: float = 0.0
    summaries: int = 0
    """Nodes in the view now."""
    fallbacks: int = 0
    """Nodes in the view that no model wrote."""

    def answered(self, answer: Answer) -> None:
        """Adds the usage that an answer reports."""
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens
        if answer.cost is not None:
            self.cost_usd = f"{answer.cost + Decimal(self.cost_usd or 0):f}"

    def waited(self, seconds: float) -> None:
        """Adds the waiting time of one request."""
        self.waits += 1
        self.waited_s += seconds
        self.longest_wait_s = max(self.longest_wait_s, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of one manager, made once."""

    config: Config
    prompts: PromptSet
    store: SummaryStore
    outbox: Outbox
    totals: Statistics
    """The running sums. `statistics()` fills in the figures of the log and the view."""
    redact: Redact | None
    """Removes secrets from a text."""
    count: Count
    """Returns the tokens of a text."""
    clock: Callable[[], float]
    """Seconds, for retries and measured waiting."""
    sleep: Callable[[float], Awaitable[None]]
