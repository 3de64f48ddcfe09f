"""What the parts of one session share: settings, prompts, store, events, running totals, and how tokens are counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from context_summarize.config import Config
from context_summarize.events import Outbox
from context_summarize.stores import SummaryStore
from context_summarize.summaries.prompts import PromptSet
from context_summarize.summaries.usage import Totals
from context_summarize.tokens.measure import Count


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
