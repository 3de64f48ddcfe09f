"""Usage of the calls for summaries: tokens, cost, waiting; what no call can have used is left out."""

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


_MOST_TOKENS = 10**9
_MOST_DOLLARS = 10**6
_PLACES = Decimal("1e-12")
"""Figures beyond these are absurd for one call; a figure with 999,999 digits would stop every sum after it."""


def amount(told: Any) -> Decimal | None:
    """A provider's figure as US dollars; None if it is no number from 0 to a million."""
    if isinstance(told, bool) or not isinstance(told, int | float | str | Decimal):
        return None
    try:
        value = Decimal(str(told))
    except (InvalidOperation, ValueError):
        return None
    if not value.is_finite() or not 0 <= value <= _MOST_DOLLARS:
        return None
    exponent = value.as_tuple().exponent
    short = isinstance(exponent, int) and -12 <= exponent <= 0  # it is a letter for what is not finite
    return value if short else value.quantize(_PLACES)


def tokens_used(usage: Any, name: str) -> int:
    """A provider's figure as tokens; 0 if it is no positive whole number, or an absurd one."""
    value = getattr(usage, name, None)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return int(value) if 0 < value <= _MOST_TOKENS else 0


@dataclass(slots=True)
class Run:
    """What one key has used up so far."""

    started: float
    attempts: int = 0
    is_piece: bool = False
    """True while pieces of the input are asked for."""
    pieces: int = 0
    """Answers to pieces that the summary is made of."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    model: str | None = None
