"""Corrects our token estimates with the provider's own figures."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, linear_regression
from typing import Any


def _clamp(ratio: float) -> float:
    return min(max(ratio, 0.7), 1.6)


def _spread(seen: list[tuple[int, int]]) -> bool:
    """True when the estimates differ by more than 20 %, so that ratio and constant can be told apart."""
    return max(e for e, _ in seen) > 1.2 * min(e for e, _ in seen)


def _fit(seen: list[tuple[int, int]], ratio: float) -> tuple[float, float]:
    """Ratio and constant of the line through the observations; while these are too alike, only the constant is new."""
    if _spread(seen):
        estimates, actuals = zip(*seen, strict=True)
        ratio = _clamp(linear_regression(estimates, actuals).slope)
        constant = fmean(actuals) - ratio * fmean(estimates)  # not the regression's: the ratio may be clamped
        through_origin = linear_regression(estimates, actuals, proportional=True).slope
    else:
        estimate, actual = seen[-1]
        constant = actual - ratio * estimate
        through_origin = actual / max(estimate, 1)
    return (ratio, constant) if constant >= 0 else (_clamp(through_origin), 0.0)


def _misses(ratio: float, constant: float, new: tuple[int, int]) -> bool:
    """True when the observation is off by more than a quarter of what the fit predicts."""
    predicted = ratio * new[0] + constant
    return abs(new[1] - predicted) > 0.25 * predicted


class Meter:
    """Corrects estimates with the provider's figures: a ratio for its tokenizer, a constant for tools and wrapping."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: `correct` changes nothing until the next observation."""
        self._ratio, self._constant = 1.0, 0.0
        self._seen: list[tuple[int, int]] = []
        self._served: int | None = None

    def served(self, estimate: int) -> None:
        """A view of that many estimated tokens was handed out; a later one replaces it."""
        self._served = estimate

    def observe(self, usage: Mapping[str, Any]) -> bool:
        """Learn from the usage of an `llm:response`; True when it was taken for that of the served view.

        Only the first plausible usage after a served view is taken: 0.6 * estimate … 1.8 * estimate + 100,000 (tools)
        tokens; a smaller one belongs to a helper's call. Cache reads are not added: some hosts count them in
        `input_tokens`.
        """
        figures = (usage.get("input_tokens"), usage.get("cache_write_tokens"))
        actual = sum(figure for figure in figures if type(figure) is int and figure > 0)
        if (estimate := self._served) is None or not max(0.6 * estimate, 1) <= actual <= 1.8 * estimate + 100_000:
            return False
        self._served = None
        self._learn((estimate, actual))
        return True

    def _learn(self, new: tuple[int, int]) -> None:
        seen = [*self._seen, new][-8:]
        fit = _fit(seen, self._ratio)
        # A figure that is far off means another model. But before there is a line, the ratio is a guess: then the first
        # observation of another size may be far off too, and it gives the line.
        gives_line = self._seen and not _spread(self._seen) and _spread(seen) and not _misses(*fit, new)
        if self._seen and _misses(self._ratio, self._constant, new) and not gives_line:
            seen, fit = [new], _fit([new], self._ratio)
        self._seen, (self._ratio, self._constant) = seen, fit

    def correct(self, estimate: int) -> int:
        """What the provider will most likely count for that estimate (tokens)."""
        return round(self._ratio * estimate + self._constant)

    def invert(self, tokens: int) -> int:
        """The largest estimate whose corrected size is at most `tokens`; 0 when there is none."""
        low, high = 0, max(0, int((tokens - self._constant) / self._ratio) + 2)
        while low < high:  # halved: a budget beyond what a float holds exactly is off by more than a few
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.correct(middle) <= tokens else (low, middle - 1)
        return low
