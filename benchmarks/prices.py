"""Prices a session in dollars, at the list prices of two current models with a prompt cache."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.run import Result
from context_summarize.replay.prices import HAIKU, SOL, Prices

MODELS: Mapping[str, Prices] = {"sol": SOL, "haiku": HAIKU}
DOLLARS = tuple(f"dollars_{model}" for model in MODELS)
"""Names of the figures of `dollars`."""


def dollars(result: Result) -> dict[str, float]:
    """Returns the dollars of a session with each model. A call that was refused costs nothing."""
    calls = [one for one in result.calls if not one.refused]
    found = (
        prices.of_requests((one.tokens, one.cached) for one in result.requests)
        + sum(prices.of_calls(one.read, one.wrote, one.read) for one in calls)
        for prices in MODELS.values()
    )
    return dict(zip(DOLLARS, found, strict=True))
