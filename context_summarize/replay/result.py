"""What a replay tells, as plain data: its boundaries, its requests, what was checked, and the totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from context_summarize.messages.rows import JsonRow
from context_summarize.session.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CompactionLine:
    """One boundary, as its events told it."""

    row: int
    """The assistant row, counted from 1, whose request made it."""
    before_tokens: int
    after_tokens: int
    segments: int
    """Stretches of history that were folded."""
    merged: int
    from_cache: int
    """Summaries that cost no provider call."""
    digests: int
    """Summaries shown that no model could be had for."""
    wait_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request, as it would have gone out."""

    row: int
    """The assistant row, counted from 1, that answered it."""
    tokens: int
    rows: int


@dataclass(slots=True)
class Check:
    """One promise, and how often it was looked at and broken."""

    name: str
    unit: str
    """What `checked` and `broken` count."""
    meaning: str = ""
    """The promise in words."""
    checked: int = 0
    broken: int = 0
    first: str | None = None
    """The first problem."""

    @property
    def ok(self) -> bool:
        """True while nothing has broken it."""
        return not self.broken

    def note(self, problems: Sequence[str], checked: int = 1, broken: int | None = None) -> None:
        """Count what was looked at; the first problem is kept."""
        self.checked += checked
        if problems:
            self.broken += len(problems) if broken is None else broken
            self.first = self.first or problems[0]


@dataclass(slots=True)
class ReplayResult:
    """What a replay saw. Plain data: nothing in it is bound to the manager or to how it is printed."""

    provider: str
    budget: int
    """Tokens that one request may hold."""
    source: str = ""
    """What was replayed, such as the name of a file."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that are not the default's; what may hold an address or a password is named without its value."""
    redact: bool | tuple[str, ...] = True
    """The setting of that name: what is taken out of the texts where they are shown to others."""
    threshold_tokens: int | None = None
    """Size of a request that makes a boundary; None where only a full budget does."""
    target_tokens: int = 0
    """Size that a boundary aims at."""
    window: int | None = None
    """Tokens of the context window that the budget comes from, where it comes from one."""
    messages: int = 0
    history_tokens: int = 0
    requests: int = 0
    largest_view: int = 0
    """Tokens of the largest view."""
    stable_rows: int = 0
    """Rows of each view that stood unchanged at the start of the next one, summed."""
    compared_rows: int = 0
    """Rows of each view that had a next one, summed."""
    provider_calls: int = 0
    failed_calls: int = 0
    failed_summaries: int = 0
    """Summaries that could not be had, tries and all: a digest stood for them."""
    provider_input_tokens: int = 0
    provider_output_tokens: int = 0
    seconds: float = 0.0
    boundaries: list[CompactionLine] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    request_lines: list[RequestLine] = field(default_factory=list)
    last_view: list[JsonRow] = field(default_factory=list)
    last_sizes: list[int] = field(default_factory=list)
    """Tokens of each row of `last_view`."""
    snapshot: Snapshot | None = None
    """What the manager held at the end; None before it."""

    @property
    def stable_share(self) -> float:
        """Share of rows that a provider's prompt cache can take from the request before, 0…1."""
        return self.stable_rows / self.compared_rows if self.compared_rows else 1.0

    @property
    def failed(self) -> Check | None:
        """The first check that failed."""
        return next((check for check in self.checks if not check.ok), None)
