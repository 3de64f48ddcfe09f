"""What the parts of one session share: settings, prompts, store, events, running totals, and how tokens are counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal

from context_summarize.config import Config
from context_summarize.events import Outbox
from context_summarize.stores import SummaryStore
from context_summarize.summaries.answer import Answer
from context_summarize.summaries.prompts import PromptSet
from context_summarize.tokens.measure import Count


class Totals:
    """The running sums behind `Statistics`."""

    def __init__(self) -> None:
        self.requests = 0
        self.compactions = 0
        self.calls = 0
        self.failed = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.from_cache = 0
        self.waits = 0
        self.waited = 0.0
        self.longest = 0.0
        self._cost: Decimal | None = None

    def answered(self, answer: Answer) -> None:
        """Add what an answer tells of its usage."""
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens
        if answer.cost is not None:
            self._cost = answer.cost + (self._cost or 0)

    def waited_for(self, seconds: float) -> None:
        """Add the waiting time of one request."""
        if seconds > 0:
            self.waits += 1
            self.waited += seconds
            self.longest = max(self.longest, seconds)

    @property
    def cost_usd(self) -> str | None:
        """The sum as a decimal number; None if no cost was reported."""
        return None if self._cost is None else f"{self._cost:f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Made once, when the manager is made."""

    config: Config
    prompts: PromptSet
    store: SummaryStore
    outbox: Outbox
    totals: Totals
    count: Count
    """Tokens of a text."""
    clock: Callable[[], float]
    """Seconds, for retries and measured waiting."""
    sleep: Callable[[float], Awaitable[None]]
