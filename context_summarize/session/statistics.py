"""What the summaries of a session have taken so far, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass


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
    boundaries: int
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
    digests: int
    """Those of them that no model wrote."""
    coverage: float | None
    """Share of exact values of the folded rows that the summaries shown hold, 0…1, on average; None without any."""
