"""What the summaries of a session have taken so far: counted as it happens, told as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any


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


class Totals:
    """The running sums behind `Statistics`."""

    def __init__(self) -> None:
        self.requests = 0
        self.boundaries = 0
        self.calls = 0
        self.failed = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.from_cache = 0
        self.waits = 0
        self.waited = 0.0
        self.longest = 0.0
        self._cost: Decimal | None = None

    def paid(self, cost: Decimal | None) -> None:
        """A call cost so much, in US dollars; None where the provider does not say."""
        if cost is not None:
            self._cost = cost if self._cost is None else self._cost + cost

    def waited_for(self, seconds: float) -> None:
        """One request waited so long."""
        if seconds > 0:
            self.waits += 1
            self.waited += seconds
            self.longest = max(self.longest, seconds)

    @property
    def cost_usd(self) -> str | None:
        """The sum, written out."""
        return None if self._cost is None else f"{self._cost:f}"


def amount(told: Any) -> Decimal | None:
    """What a provider tells as an amount; None where it is none."""
    try:
        value = Decimal(str(told))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
