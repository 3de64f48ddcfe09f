"""Replays of one recording with several settings, side by side: what each takes and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

from context_summarize.redaction.redactor import build_redactor
from context_summarize.replay.kept_values import Kept, KeptValues
from context_summarize.replay.result import ReplayResult

_MILLION = 1_000_000
_SAME = 1e-9
"""Dollars below which two prices are the same."""
_SHORT = 2_000
"""Tokens: requests below this hold too little for segments."""
_SOONER = 0.6
"""Share of the largest request at which the suggested window would compact: early enough for some compactions."""
_STEP = 100
"""Tokens to which it is rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars for a million tokens."""

    input: float
    cached: float
    """Of input that the provider's prompt cache holds."""
    output: float


@dataclass(frozen=True, slots=True)
class Column:
    """One set of settings, and the replay with it."""

    label: str
    """How outputs name the column, such as `A`."""
    source: str
    """What the user named: a file, or the settings."""
    settings: Mapping[str, Any]
    """As they were given."""
    result: ReplayResult
    kept: Kept | None = None
    """Exact values of all summarised messages, and those that the summaries of the last request hold."""

    @property
    def is_sound(self) -> bool:
        """True if every check passed and the provider wrote summaries: another column cannot be the better one."""
        return self.result.failed is None and not self.result.no_summary_made

    @property
    def read(self) -> int:
        """Tokens of all requests of the agent together."""
        return sum(line.tokens for line in self.result.request_lines)

    @property
    def read_cached(self) -> int:
        """Those of them that repeat the start of the previous request: a prompt cache that never expires holds them."""
        return sum(line.repeated_tokens for line in self.result.request_lines)

    @property
    def cached_share(self) -> float:
        """Cached part of what the agent's requests hold, 0…1."""
        return self.read_cached / self.read if self.read else 0.0

    def agent_price(self, prices: Prices) -> float:
        """Dollars for what the agent's requests hold. Its answers cost the same with any settings and are left out."""
        return (prices.input * (self.read - self.read_cached) + prices.cached * self.read_cached) / _MILLION

    def summaries_price(self, prices: Prices) -> float:
        """Dollars for the calls for summaries."""
        result = self.result
        return (prices.input * result.provider_input_tokens + prices.output * result.provider_output_tokens) / _MILLION

    def price(self, prices: Prices) -> float:
        """Dollars for both together."""
        return self.agent_price(prices) + self.summaries_price(prices)


def kept_at_end(result: ReplayResult) -> Kept | None:
    """How many exact values of the summarised messages the summaries hold at the end; None if none was summarised."""
    snapshot = result.snapshot
    if snapshot is None or not snapshot.nodes:
        return None
    return KeptValues(snapshot.nodes, snapshot.messages, build_redactor(result.redact) or str).together().kept


def nothing_compacted(columns: Sequence[Column]) -> bool:
    """True if no column made a compaction: the settings then say nothing about this recording."""
    return not any(column.result.boundaries for column in columns)


def smaller_window(result: ReplayResult) -> int | None:
    """A window in which a replay without a compaction would have made some; None if no window is known to do so."""
    if result.threshold_tokens is None or result.largest_view < _SHORT:
        return None
    share = result.threshold_tokens / result.budget
    budget = int(_SOONER * result.largest_view / share)
    window = budget + result.kept_free if budget >= result.kept_free / 2 else 2 * budget
    return floor(window / _STEP) * _STEP


def cheapest(columns: Sequence[Column], prices: Prices) -> Column | None:
    """The sound column with the lowest price; None if there is none, or if the lowest two cost the same."""
    sound = sorted((column for column in columns if column.is_sound), key=lambda column: column.price(prices))
    if not sound or (len(sound) > 1 and sound[1].price(prices) - sound[0].price(prices) < _SAME):
        return None
    return sound[0]
