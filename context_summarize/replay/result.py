"""A replay as plain data: requests, compactions, checks and totals; and the text of rows for readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow, compact_json
from context_summarize.messages.text import call_line, prose
from context_summarize.replay.prices import SOL, Prices
from context_summarize.summaries.services import Statistics
from context_summarize.transcript.marks import counted


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction."""

    row: int
    """The assistant row, counted from 1 over all rows, that answers the compacted request."""
    event: Mapping[str, Any]
    """The data of its event `context:post_compact`, and the `reason` of the event before it."""
    made_rows: Sequence[JsonRow] = ()
    """The rows that replace older messages from this request on, in the order of the request."""

    @property
    def before(self) -> int:
        """Tokens of the request without the compaction."""
        return int(self.event["tokens"] + self.event["tokens_saved"])

    @property
    def after(self) -> int:
        """Tokens of the request."""
        return int(self.event["tokens"])


@dataclass(frozen=True, slots=True)
class RequestSize:
    """One request, as an agent would have sent it."""

    row: int
    """The assistant row, counted from 1, that answers it."""
    tokens: int
    history_tokens: int
    """Tokens of all messages up to this request."""
    cached: int = 0
    """Tokens with which it begins as the request before it: what a provider's prompt cache holds."""


@dataclass(slots=True)
class Check:
    """One promise, and where it was broken first."""

    name: str
    meaning: str
    """The promise as a sentence."""
    first: str | None = None
    """The first problem."""

    @property
    def ok(self) -> bool:
        """True while nothing breaks the promise."""
        return self.first is None

    def note(self, problems: Sequence[str]) -> None:
        """Keeps the first problem."""
        self.first = self.first or next(iter(problems), None)


@dataclass(slots=True)
class ReplayResult:
    """The results of a replay."""

    provider: str
    """The name of the provider that wrote the summaries."""
    budget: int
    """Tokens that one request may hold."""
    prices: Prices | None = SOL
    """The list prices of the model; None if none are known. Without a model those of a current one."""
    redact: bool | tuple[str, ...] = True
    """The setting of that name, for the texts of a page."""
    rows: list[JsonRow] = field(default_factory=list)
    """The rows of the recording."""
    numbers: list[int | None] = field(default_factory=list)
    """The message number of each of these rows; None for a row without one."""
    history_tokens: int = 0
    """Tokens of the rows that were added so far."""
    requests: list[RequestSize] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    last_view: list[JsonRow] = field(default_factory=list)
    totals: Statistics = field(default_factory=Statistics)
    """What the manager counted, such as calls for summaries."""
    made_summaries: int = 0
    """Summaries that the provider wrote."""
    last_failure: str = ""
    """The error of the last summary that failed."""

    @property
    def largest_view(self) -> int:
        """Tokens of the largest request."""
        return max((request.tokens for request in self.requests), default=0)

    @property
    def dollars(self) -> float | None:
        """Dollars of all requests and summaries, without the model's own answers; None if the model has no price."""
        if self.prices is None:
            return None
        summaries = self.prices.of_calls(self.totals.input_tokens, self.totals.output_tokens)
        return self.prices.of_requests((one.tokens, one.cached) for one in self.requests) + summaries

    @property
    def dollars_whole_history(self) -> float | None:
        """Dollars of an agent that sends the whole history with each request; None if the model has no price."""
        sizes = [request.history_tokens for request in self.requests]
        return None if self.prices is None else self.prices.of_requests(zip(sizes, [0, *sizes], strict=False))

    @property
    def failed(self) -> Check | None:
        """The first check that failed."""
        return next((check for check in self.checks if not check.ok), None)

    @property
    def problem(self) -> str | None:
        """The problem that a reader of the figures should know first; None without one."""
        if self.failed is not None:
            return f"FAILED: {self.failed.name}: {self.failed.first}"
        if self.totals.failed and not self.made_summaries:
            called = f"{self.provider} was called {counted(self.totals.calls, 'time')} and wrote none"
            return f"NO SUMMARIES: {called}: {self.last_failure}. Check the provider (--provider, --model)."
        return None

    def as_data(self) -> dict[str, Any]:
        """Returns the figures, compactions and checks as JSON has them, without rows."""
        return {
            "provider": self.provider,
            "budget": self.budget,
            "history_tokens": self.history_tokens,
            "requests": len(self.requests),
            "largest_request": self.largest_view,
            "dollars": self.dollars,
            "dollars_whole_history": self.dollars_whole_history,
            "statistics": asdict(self.totals),
            "compactions": [{"row": one.row, **one.event} for one in self.compactions],
            "checks": [{**asdict(check), "ok": check.ok} for check in self.checks],
            "problem": self.problem,
        }


def figures(result: ReplayResult) -> list[tuple[str, str, str]]:
    """Returns the figures of a replay, as (what, figure, remark)."""
    largest = f"tokens of {result.budget:,} allowed ({result.largest_view / result.budget:.0%})"
    totals, sent = result.totals, sum(one.tokens for one in result.requests)
    calls = f"for summaries: {totals.input_tokens:,} tokens in, {totals.output_tokens:,} out"
    if totals.failed:
        calls += f"; {counted(totals.failed, 'summary', 'summaries')} failed, so code wrote them"
    cached = sum(one.cached for one in result.requests) / max(1, sent)
    dollars = ("Dollars", "unknown", "the model has no list price here")
    if result.prices is not None:
        whole = f"sending the whole history costs {result.dollars_whole_history:.2f} ({result.prices.name})"
        dollars = ("Dollars", f"{result.dollars:.2f}", whole)
    return [
        ("Messages", f"{len(result.rows):,}", f"{result.history_tokens:,} tokens, all kept in the history"),
        ("Requests", f"{len(result.requests):,}", "one for each message of the agent"),
        ("Largest request", f"{result.largest_view:,}", largest),
        ("Cacheable", f"{cached:.0%}", "of the tokens sent; each request begins as the one before it"),
        ("Provider calls", f"{totals.calls:,}", calls),
        dollars,
    ]


def message_numbers(rows: Iterable[JsonRow]) -> list[int | None]:
    """Returns the number of each row, as frames and recall show it: rendered rows from 1, None for the rest."""
    rendered = [analyse(row).rendered for row in rows]
    return [number if shown else None for number, shown in zip(accumulate(map(int, rendered)), rendered, strict=True)]


def named(numbers: Sequence[int | None], row: int) -> str:
    """Returns `message 7`, or `row 9` for a row without a number. `row` counts from 1 over all rows."""
    number = numbers[row - 1] if row <= len(numbers) else None
    return f"row {row:,}" if number is None else f"message {number:,}"


def row_text(row: JsonRow) -> str:
    """Returns the text of a row: its texts and results, then a line for each call."""
    facts = analyse(row)
    calls = (call_line(call.name, compact_json(call.arguments)) for call in facts.calls)
    return "\n".join(filter(None, [prose(facts), *calls]))
