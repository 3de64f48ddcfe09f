"""Corrects our token estimates with the provider's figures: a ratio for its tokenizer, a constant for its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean, linear_regression
from typing import Any

from context_summarize.tokens.measure import input_tokens


class Meter:
    """Learns from the usage of each served view. Before the first usage, `correct` changes nothing."""

    def __init__(self) -> None:
        self._ratio, self._constant = 1.0, 0.0
        self._seen: list[tuple[int, int]] = []
        self._served: tuple[int, int, bool] | None = None
        self._is_claimed = False

    def served(self, estimate: int, *, system: int = 0, may_chain: bool = False) -> None:
        """Records that a view of this many estimated tokens was served. It replaces the view before.

        Args:
            system: tokens of its system rows, which no chain repeats.
            may_chain: True if its rows have continuation ids. A provider that chains on its server counts the chain.
        """
        self._served = estimate, estimate - system, may_chain

    @property
    def unanswered(self) -> int | None:
        """The estimate of the view that was served last; None once its usage has come."""
        return self._served[0] if self._served is not None else None

    def answered(self) -> None:
        """Records that the last view was answered without usage."""
        self._served = None

    def claim(self) -> Callable[..., bool]:
        """Returns a function that records usage, for a loop that knows which responses are for views.

        Each call records the usage of the view that was served last. From now on no other usage counts.
        """
        self._is_claimed = True
        return lambda **usage: self.observe(usage, is_claimed=True)

    def is_of_view(self, usage: Mapping[str, Any]) -> bool:
        """Returns True if these may be the figures of the served view. Figures below 0.6 of it are a helper's."""
        return self._served is not None and input_tokens(usage) >= max(0.6 * self._served[0], 1)

    def observe(self, usage: Mapping[str, Any], *, is_claimed: bool = False) -> bool:
        """Learns from the usage of an `llm:response`; returns True if it counts as that of the served view.

        Args:
            is_claimed: True if it comes by the function that `claim` has returned.
        """
        if self._served is None or is_claimed != self._is_claimed or not self.is_of_view(usage):
            return False
        (estimate, conversation, may_chain), actual = self._served, input_tokens(usage)
        self._served = None
        # A chain repeats the conversation. Its first request, and the one after a compaction, have none.
        is_chain = may_chain and actual - self.correct(estimate) > 0.5 * conversation
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
        if max(estimates) > 1.2 * min(estimates):  # else ratio and constant cannot be separated
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
        """Returns our own tokens for a conversation of this many as the provider counts, without the constant."""
        return max(0, int(tokens / self._ratio))

    def invert(self, tokens: int) -> int:
        """Returns the estimate whose corrected size is that many tokens; 0 if there is none."""
        return max(0, int((tokens - self._constant) / self._ratio))
