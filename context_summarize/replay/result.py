"""The result of a replay as plain data: compactions, requests, checks and totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from context_summarize.messages.rows import JsonRow
from context_summarize.replay.views import Views
from context_summarize.session.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CompactionLine:
    """One compaction, from its events."""

    row: int
    """The assistant row, counted from 1, that answers the compacted request."""
    before_tokens: int
    after_tokens: int
    segments: int
    """Segments that were summarised."""
    merged: int
    from_cache: int
    """Summaries that needed no provider call."""
    digests: int
    """Fallback summaries shown."""
    wait_ms: int
    reason: str
    message: int | None = None
    """The number of that assistant row, as frames and recall count; None for a row without one."""


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request, as an agent would have sent it."""

    row: int
    """The assistant row, counted from 1, that answers it."""
    tokens: int
    rows: int
    message: int | None = None
    """The number of that assistant row, as frames and recall count; None for a row without one."""
    repeated_tokens: int = 0
    """Of its tokens those at the start that repeat the previous request, and that a prompt cache may hold."""


@dataclass(slots=True)
class Check:
    """One promise, and how often it was checked and broken."""

    name: str
    unit: str
    """What `checked` and `broken` count."""
    meaning: str = ""
    """The promise as a sentence."""
    checked: int = 0
    broken: int = 0
    first: str | None = None
    """The first problem."""

    @property
    def ok(self) -> bool:
        """True while nothing breaks the promise."""
        return not self.broken

    def note(self, problems: Sequence[str], checked: int = 1, broken: int | None = None) -> None:
        """Count what was checked, and keep the first problem."""
        self.checked += checked
        if problems:
            self.broken += len(problems) if broken is None else broken
            self.first = self.first or problems[0]


@dataclass(slots=True)
class ReplayResult:
    """The result of a replay. Plain data, independent of the manager and of how it is printed."""

    provider: str
    budget: int
    """Tokens that one request may hold."""
    source: str = ""
    """Name of the recording, such as a file name."""
    notes: tuple[str, ...] = ()
    """What was chosen for the user because an option could not be met: a sentence each."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the defaults. A value that may be an address or a path is hidden."""
    redact: bool | tuple[str, ...] = True
    """The setting of that name: what a report removes from its texts."""
    threshold_tokens: int | None = None
    """Request size at which a compaction runs; None if it runs only when a request does not fit."""
    target_tokens: int = 0
    """Request size that a compaction aims at."""
    window: int | None = None
    """Tokens of the context window that gives the budget; None if the budget is set directly."""
    kept_free: int = 0
    """Tokens of the window that the answer and the safety margin ask for; 0 if the budget is set directly."""
    messages: int = 0
    history_tokens: int = 0
    requests: int = 0
    largest_view: int = 0
    """Tokens of the largest view."""
    stable_rows: int = 0
    """Sum over all views: rows that the start of the next view repeats unchanged."""
    compared_rows: int = 0
    """Sum over all views except the last: rows."""
    provider_calls: int = 0
    failed_calls: int = 0
    failed_summaries: int = 0
    """Summaries that failed after all attempts; fallback summaries replaced them."""
    made_summaries: int = 0
    """Summaries that the provider wrote."""
    unused_summaries: int = 0
    """Those of them that no request has shown, alone or merged: they were made ahead of a compaction."""
    unused_input_tokens: int = 0
    unused_output_tokens: int = 0
    """Tokens of the calls for unused summaries, as the provider reported them."""
    coverage: float | None = None
    """Share of the exact values of their sources that the summaries shown at the end hold, 0…1, on average; None if
    there are none. The sources of a merged summary are summaries: `kept_at_end` counts the messages behind them."""
    provider_input_tokens: int = 0
    provider_output_tokens: int = 0
    seconds: float = 0.0
    boundaries: list[CompactionLine] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    request_lines: list[RequestLine] = field(default_factory=list)
    last_view: list[JsonRow] = field(default_factory=list)
    last_sizes: list[int] = field(default_factory=list)
    """Tokens of each row of `last_view`."""
    rows: list[JsonRow] = field(default_factory=list)
    """What was fed."""
    row_tokens: list[int] = field(default_factory=list)
    """Tokens of each row of `rows`."""
    views: Views = field(default_factory=Views)
    """All views with their rows; in each request the one that was sent."""
    snapshot: Snapshot | None = None
    """What the manager holds at the end; None before the end."""

    @property
    def stable_share(self) -> float:
        """Share of rows that a provider's prompt cache holds from the previous request, 0…1."""
        return self.stable_rows / self.compared_rows if self.compared_rows else 1.0

    @property
    def mean_view(self) -> float:
        """Tokens of a request on average; 0 without requests."""
        sizes = [line.tokens for line in self.request_lines]
        return sum(sizes) / len(sizes) if sizes else 0.0

    @property
    def no_summary_made(self) -> bool:
        """True if the provider was asked for summaries and every one failed: only fallback summaries were shown."""
        return self.failed_summaries > 0 and self.made_summaries == 0

    @property
    def failed(self) -> Check | None:
        """The first check that failed."""
        return next((check for check in self.checks if not check.ok), None)
