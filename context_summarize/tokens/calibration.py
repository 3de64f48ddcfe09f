"""Corrects our token estimates with the provider's figures: a ratio for its tokenizer, a constant for its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean, linear_regression
from typing import Any


class Meter:
    """Learns from the usage of each served view. `correct` changes nothing until the first one."""

    def __init__(self) -> None:
        self._ratio, self._constant = 1.0, 0.0
        self._seen: list[tuple[int, int]] = []
        self._served: tuple[int, int, bool] | None = None
        self._is_claimed = False
        self._last: int | None = None
        self._excess = 0

    def served(self, estimate: int, *, system: int = 0, may_chain: bool = False) -> None:
        """A view of that many estimated tokens was handed out; a later one replaces it.

        Args:
            system: those of them that stand in system rows: no chain repeats them.
            may_chain: rows of it carry continuation ids. A provider that chains on its server reports the chain too.
        """
        self._served = estimate, estimate - system, may_chain

    @property
    def unanswered(self) -> int | None:
        """The estimate of the view that was handed out last; None once its usage has come."""
        return self._served[0] if self._served is not None else None

    def answered(self) -> None:
        """The view that was handed out last has been answered without usage."""
        self._served = None

    def claim(self) -> Callable[..., bool]:
        """A recorder of usage, for a loop that knows which responses are for views; others do not count from now on.

        It may be kept: each time it is called, it records the usage of the view that was handed out last.
        """
        self._is_claimed = True
        return lambda **usage: self._taken(usage)

    def observe(self, usage: Mapping[str, Any]) -> bool:
        """Learns from the usage of an `llm:response`; True when it was taken for that of the served view."""
        return not self._is_claimed and self._taken(usage)

    def is_of_view(self, usage: Mapping[str, Any]) -> bool:
        """Whether these may be the figures of the served view: below 0.6 of it they are those of a helper's call."""
        return self._served is not None and _actual(usage) >= max(0.6 * self._served[0], 1)

    def _taken(self, usage: Mapping[str, Any]) -> bool:
        if self._served is None or not self.is_of_view(usage):
            return False
        (estimate, conversation, may_chain), actual = self._served, _actual(usage)
        self._served = None
        # A chain holds the last conversation once more. Tools that nobody has counted yet are as much beyond what is
        # expected, but the next figure shows as much again, while a chain grows by a whole conversation.
        repeated = min(self._last or conversation, conversation)
        excess, before = actual - self.correct(estimate), self._excess
        self._last, self._excess = conversation, excess
        is_chain = may_chain and excess > 0.5 * repeated and abs(excess - before) > 0.25 * repeated
        if is_chain or actual > 1.8 * estimate + 100_000:
            return False
        self._learn(estimate, actual)
        return True

    def _learn(self, estimate: int, actual: int) -> None:
        expected = self.correct(estimate)
        if abs(actual - expected) > 0.25 * expected:
            self._seen = []  # another model
        self._seen = [*self._seen, (estimate, actual)][-8:]
        estimates, actuals = zip(*self._seen, strict=True)
        if max(estimates) > 1.2 * min(estimates):  # else ratio and constant cannot be told apart
            self._ratio = min(max(linear_regression(estimates, actuals).slope, 0.7), 1.6)
            self._constant = fmean(actuals) - self._ratio * fmean(estimates)
        else:
            self._constant = actual - self._ratio * estimate
        if self._constant < 0:
            self._ratio, self._constant = min(max(sum(actuals) / max(sum(estimates), 1), 0.7), 1.6), 0.0

    def correct(self, estimate: int) -> int:
        """Returns the tokens that the provider will most likely count for that estimate."""
        return round(self._ratio * estimate + self._constant)

    def own(self, tokens: int) -> int:
        """So many tokens of a conversation in our own, whatever else a request holds."""
        return max(0, int(tokens / self._ratio))

    def invert(self, tokens: int) -> int:
        """Returns the estimate whose corrected size is that many tokens; 0 when there is none."""
        return max(0, int((tokens - self._constant) / self._ratio))


def _actual(usage: Mapping[str, Any]) -> int:
    """Input tokens that a provider tells; cache reads may stand in `input_tokens` already."""
    figures = (usage.get("input_tokens"), usage.get("cache_write_tokens"))
    return sum(figure for figure in figures if type(figure) is int and figure > 0)
