"""Prices requests and calls in dollars, at list prices; a model without a known price has none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


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

    def of_requests(self, requests: Iterable[tuple[int, int]]) -> float:
        """Returns the dollars of a session's requests, without the model's own answers, which are the same for all.

        Args:
            requests: tokens of each, and how many of them the provider's cache holds.
        """
        return sum(
            (self.times if tokens > self.long else 1.0) * (self.read * cached + self.write * (tokens - cached)) / 1e6
            for tokens, cached in requests
        )

    def of_calls(self, read: int, wrote: int, longest: int = 0) -> float:
        """Returns the dollars of calls that no cache helps, such as those for summaries.

        Args:
            read, wrote: tokens of all of them.
            longest: tokens of the longest input.
        """
        into, out = (self.times, self.times_output) if longest > self.long else (1.0, 1.0)
        return (into * self.input * read + out * self.output * wrote) / 1e6


SOL = Prices("GPT-6.2 Sol", 2.0, 2.5, 0.1, 10.0, 272_000, 2.0, 1.5)
HAIKU = Prices("Claude Haiku 5.5", 0.1, 0.125, 0.01, 0.5, 100_000, 5.0, 5.0)


def prices_of(model: str) -> Prices | None:
    """Returns the prices of a model; None if they are not known here."""
    return next((one for one in (SOL, HAIKU) if _plain(model).endswith(_plain(one.name))), None)


def _plain(name: str) -> str:
    return re.sub(r"[ .]", "-", name.lower())
