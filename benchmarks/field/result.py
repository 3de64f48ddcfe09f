"""What one contestant did in one session: the figures, and the prices that they are weighed with."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of tokens; one of uncached input is the unit."""

    read: float = 0.1
    """From a provider's prompt cache."""
    write: float = 1.25
    """Into it."""
    output: float = 5.0


@dataclass(slots=True)
class Result:
    """What one contestant did in one session."""

    name: str
    title: str
    scenario: str
    seed: int
    keep: float = 0.95
    """Chance with which the stand-in kept a fact."""
    tokens: int = 0
    """Of the session."""
    requests: int = 0
    facts_end: float = 0.0
    """Share of the planted facts that the last view holds."""
    facts_mean: float = 0.0
    """Mean over the requests, of the facts planted so far."""
    facts_by: dict[str, float] = field(default_factory=dict)
    """The same as `facts_end` for each role and each kind."""
    facts_equal: float = 0.0
    """Share in the last view cut down to `EQUAL` of the budget, its oldest verbatim rows first."""
    lost_turns: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    broken_pairs: int = 0
    """Views."""
    over_budget: int = 0
    not_user_first: int = 0
    """Views whose first row of the conversation is not a user's."""
    calls: int = 0
    refused: int = 0
    read: int = 0
    """Tokens that the summariser read."""
    wrote: int = 0
    largest_input: int = 0
    view_mean: float = 0.0
    stable: float = 0.0
    """Share of all view tokens that stood in the same place in the request before."""
    price_main: float = 0.0
    price_summaries: float = 0.0
    waited: float = 0.0
    """As a share of the model's own latency."""
    waited_worst: float = 0.0
    """Seconds."""
    boundaries: int = 0
    """Requests that did more than grow at the end."""
    cpu_mean: float = 0.0
    """Milliseconds a request, as the other two."""
    cpu_p50: float = 0.0
    cpu_p99: float = 0.0
    cpu_counting: float = 0.0
    """Milliseconds a request that the peer's counting would add if the benchmark did not cache counts for it."""
    cpu_growth: float = 0.0
    """Mean CPU of the last fifth of the requests over that of the first fifth after the first boundary."""
    memory: float = 0.0
    """Megabytes that the process grew by."""
    calls_after_restart: int | None = None
    facts_after_restart: float | None = None
    """Facts in the first view of the new process for each one in the last view of the old."""
    series: list[tuple[int, int]] = field(default_factory=list)
    """(tokens of the session so far, tokens of the view)."""
    waits: list[tuple[int, float]] = field(default_factory=list)
    """(tokens of the session so far, seconds waited) where a request waited."""
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """Of real time."""

    @property
    def price(self) -> float:
        """Of the whole session, the model's own output aside, which is the same for all."""
        return self.price_main + self.price_summaries

    @property
    def cpu_whole(self) -> float:
        """Milliseconds a request, counting without a cache included."""
        return self.cpu_mean + self.cpu_counting

    def as_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)
