"""Prices a session in dollars, at the list prices of two current models with a prompt cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.run import Request, Result
from benchmarks.summarisers import Call


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars a million tokens in November 2026: Haiku's as in `genai-prices`, Sol's as on OpenAI's own page."""

    name: str
    input: float
    write: float
    """Input that goes into the cache."""
    read: float
    """Input that the cache holds."""
    output: float
    long: int
    """Tokens of input above which the whole request is a long one."""
    times: float
    """Factor of the price of a long request's input, cached or not."""
    times_output: float

    def of_requests(self, requests: Iterable[Request]) -> float:
        """Returns the dollars of a session's requests, without the model's own answers, which are the same for all."""
        return sum(
            self._input(one.tokens) * (self.read * one.cached + self.write * (one.tokens - one.cached)) / 1e6
            for one in requests
        )

    def of_summaries(self, calls: Iterable[Call]) -> float:
        """Returns the dollars of the summariser's calls. Each shows something else, so no cache helps."""
        return sum(
            (self._input(one.read) * self.input * one.read + self._output(one.read) * self.output * one.wrote) / 1e6
            for one in calls
            if not one.refused
        )

    def _input(self, tokens: int) -> float:
        return self.times if tokens > self.long else 1.0

    def _output(self, tokens: int) -> float:
        return self.times_output if tokens > self.long else 1.0


MODELS: Mapping[str, Prices] = {
    "sol": Prices("GPT-6.2 Sol", 2.0, 2.5, 0.1, 10.0, 272_000, 2.0, 1.5),
    "haiku": Prices("Claude Haiku 5.5", 0.1, 0.125, 0.01, 0.5, 100_000, 5.0, 5.0),
}
DOLLARS = tuple(f"dollars_{model}" for model in MODELS)
"""Names of the figures of `dollars`."""


def dollars(result: Result) -> dict[str, float]:
    """Returns the dollars of a session with each model."""
    found = (prices.of_requests(result.requests) + prices.of_summaries(result.calls) for prices in MODELS.values())
    return dict(zip(DOLLARS, found, strict=True))
