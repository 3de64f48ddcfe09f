"""What the summaries of a session have taken so far, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from context_summarize.core.view_state import ViewState
from context_summarize.summaries.services import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A session's summaries up to now. Tokens of calls are as the provider told them, those of the view estimated."""

    messages: int
    """Rows of the history."""
    view_tokens: int
    """Size of the view as it would be served now."""
    budget: int | None
    """Tokens that the last request could hold; None before the first."""
    requests: int
    compactions: int
    calls: int
    """Provider calls for summaries, those that failed among them."""
    failed: int
    """Summaries that could not be had."""
    input_tokens: int
    output_tokens: int
    cost_usd: str | None
    """Sum of what the provider says its calls cost; None while it says nothing."""
    from_cache: int
    """Summaries shown that took no call."""
    waits: int
    """Requests that waited for summaries."""
    waited_s: float
    longest_wait_s: float
    summaries: int
    """Nodes in the view now."""
    fallbacks: int
    """Those of them that no model wrote."""


def take_statistics(messages: int, view_tokens: int, budget: int | None, view: ViewState, totals: Totals) -> Statistics:
    """The statistics of a session: rows of its history, size of its view, the last budget, its view, running totals."""
    shown = [item.summary for item in view.shown]
    return Statistics(
        messages=messages,
        view_tokens=view_tokens,
        budget=budget,
        requests=totals.requests,
        compactions=totals.compactions,
        calls=totals.calls,
        failed=totals.failed,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cost_usd=totals.cost_usd,
        from_cache=totals.from_cache,
        waits=totals.waits,
        waited_s=totals.waited,
        longest_wait_s=totals.longest,
        summaries=len(shown),
        fallbacks=sum(summary.fallback for summary in shown),
    )
