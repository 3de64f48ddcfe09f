"""Corrects our token estimates with the provider's own figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, linear_regression
from typing import Any

from context_summarize.tokens.chains import Chain

_CHAIN_EXCESS = 0.5
"""Share of the last conversation by which a figure may exceed what is expected; a chained one holds it once more."""
_STEADY = 0.25
"""Share of it by which the excess of tools may change; that of a chain grows by a whole conversation."""


def _tokens(usage: Mapping[str, Any], name: str) -> int:
    """A figure of a usage; 0 where it is missing or odd."""
    found = usage.get(name)
    return found if type(found) is int and found > 0 else 0


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


@dataclass(frozen=True, slots=True)
class _Served:
    """A view that was handed out."""

    estimate: int
    conversation: int
    """Those of its tokens that a chain repeats."""
    may_chain: bool


class Meter:
    """Corrects estimates with the provider's figures: a ratio for its tokenizer, a constant for tools and wrapping."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: `correct` changes nothing until the next observation."""
        self._ratio, self._constant = 1.0, 0.0
        self._seen: list[tuple[int, int]] = []
        self._served: _Served | None = None
        self._last: int | None = None
        """Tokens of the conversation that was answered last."""
        self._excess: int | None = None
        """By how much the last figure was beyond what was expected of a view whose provider may chain."""
        self._chain = Chain()

    def served(self, estimate: int, *, system: int = 0, may_chain: bool = False) -> None:
        """A view of that many estimated tokens was handed out; a later one replaces it.

        Args:
            system: those of them that stand in system rows. Providers send these apart, and chains do not repeat them.
            may_chain: rows of it carry continuation ids. A provider that chains on its server reports the whole chain
                as input; only the growth of such figures says something about the view.
        """
        self._served = _Served(estimate, estimate - system, may_chain)

    def claim(self) -> Callable[..., bool]:
        """A recorder of the usage of the served view: whoever holds it knows which response was for that view.

        It takes `input_tokens` and `cache_write_tokens`, both by name, and returns True when the figure was taken.
        Until another view is served, figures that come without it belong to somebody else's calls.
        """
        served, self._served = self._served, None

        def record(*, input_tokens: int, cache_write_tokens: int = 0) -> bool:
            usage = {"input_tokens": input_tokens, "cache_write_tokens": cache_write_tokens}
            return served is not None and self._taken(served, usage)

        return record

    def observe(self, usage: Mapping[str, Any]) -> bool:
        """Learn from the usage of an `llm:response`; True when it was taken for that of the served view.

        Only the first plausible usage after a served view is taken: 0.6 * estimate … 1.8 * estimate + 100,000 (tools)
        tokens; a smaller one belongs to a helper's call. Cache reads are not added: some hosts count them in
        `input_tokens`. The figure of a chained request is not taken.
        """
        return self._served is not None and self._taken(self._served, usage)

    def _taken(self, served: _Served, usage: Mapping[str, Any]) -> bool:
        actual, estimate = _tokens(usage, "input_tokens") + _tokens(usage, "cache_write_tokens"), served.estimate
        single = self._chain.single(estimate, actual) if served.may_chain else None
        is_plausible = max(0.6 * estimate, 1) <= actual <= 1.8 * estimate + 100_000
        if not is_plausible and single is None:
            return False
        if self._served is served:
            self._served = None
        self._chain.answered(actual, _tokens(usage, "output_tokens"))
        last, self._last = self._last, served.conversation
        repeated = served.conversation if last is None else min(last, served.conversation)
        if served.may_chain and self._is_chained(estimate, actual, repeated):
            self._learn_ratio(estimate, single)
            return False
        self._excess = None
        self._learn((estimate, actual))
        return True

    def _is_chained(self, estimate: int, actual: int, repeated: int) -> bool:
        """True for a figure that holds earlier requests too, as far as it can be told.

        It exceeds what is expected by more than half of what is repeated: the last conversation. So does that of a
        session whose tools have become more, or are not known yet. But their excess stays, and that of a chain grows
        with each request.
        """
        excess, last = actual - self.correct(estimate), self._excess
        if excess <= _CHAIN_EXCESS * repeated:
            return False
        self._excess = excess
        return last is None or abs(excess - last) > _STEADY * repeated

    def _learn_ratio(self, estimate: int, single: int | None) -> None:
        """Take the ratio from a request of a chain; the constant is that of the last one without."""
        ratio = None if single is None else self._chain.ratio(estimate, single)
        if ratio is not None and self._seen:
            before, actual = self._seen[-1]
            self._ratio, self._constant = ratio, max(0.0, actual - ratio * before)

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
