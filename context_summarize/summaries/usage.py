"""Usage of the calls for summaries: tokens, cost, waiting."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any


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

    def paid(self, cost: Decimal | None) -> None:
        """Add the cost of a call, in US dollars; None if the provider reports none."""
        if cost is not None:
            self._cost = cost if self._cost is None else self._cost + cost

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


def amount(told: Any) -> Decimal | None:
    """A provider's figure as an amount; None if it is not a finite number."""
    try:
        value = Decimal(str(told))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


@dataclass(slots=True)
class Run:
    """What one key has used up so far."""

    started: float
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    model: str | None = None


def add_usage(run: Run, response: Any, totals: Totals) -> None:
    """Add what a response tells of its usage to the run and to the totals; what is no figure is left out."""
    usage = getattr(response, "usage", None)
    for name in ("input_tokens", "output_tokens"):
        value = getattr(usage, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            setattr(run, name, getattr(run, name) + value)
            setattr(totals, name, getattr(totals, name) + value)
    cost = amount(getattr(usage, "cost_usd", None))
    totals.paid(cost)
    if cost is not None:
        run.cost = cost if run.cost is None else run.cost + cost
    marks = getattr(response, "metadata", None)
    model = getattr(response, "model", None) or (marks.get("model") if isinstance(marks, dict) else None)
    run.model = model if isinstance(model, str) else run.model
