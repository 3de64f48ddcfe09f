"""What a contestant did under one fault: the figures, and which rows its views still hold or stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.peers import Row, text_of

CALLS_PER_REQUEST = 0.25
"""Most provider calls a request, on average from the first call on, that ours may make."""


@dataclass(slots=True)
class Outcome:
    """What one contestant did under one fault."""

    title: str
    fault: str
    budget: int
    requests: int = 0
    lost_turns: int = 0
    """Requests at which an exception reached the host."""
    errors: dict[str, int] = field(default_factory=dict)
    """Those exceptions by kind."""
    over_budget: int = 0
    """Views larger than the budget, which a provider would refuse."""
    largest: int = 0
    """Tokens of the largest view."""
    broken_pairs: int = 0
    """Views with a call or a result alone."""
    lost_rows: int = 0
    """Rows that the last view neither holds nor has a summary for."""
    facts: int = 0
    """Planted facts in the last view."""
    calls: int = 0
    requests_since_call: int = 0
    """Requests from the first call on."""
    seconds: float = 0.0
    """CPU time."""

    @property
    def calls_per_request(self) -> float:
        """From the first call on."""
        return self.calls / self.requests_since_call if self.requests_since_call else 0.0

    @property
    def broken(self) -> list[str]:
        """What may not happen to ours."""
        return [
            text
            for text, bad in (
                (f"{self.lost_turns} turns lost: {self.errors}", self.lost_turns),
                (f"{self.over_budget} views over budget, the largest {self.largest:,}", self.over_budget),
                (f"{self.broken_pairs} views with broken pairs", self.broken_pairs),
                (f"{self.lost_rows} rows lost", self.lost_rows),
                (f"{self.calls_per_request:.2f} calls a request", self.calls_per_request > CALLS_PER_REQUEST),
            )
            if bad
        ]


class Trace:
    """Which rows the last view holds, which are summarised, and which are gone.

    A row that leaves the view counts as summarised when a new summary that is not empty comes with that view, and as
    long as any is shown: generous, for a summary may have been shown less than it stands for. The facts tell the rest.
    """

    def __init__(self, rows: Sequence[Row], frame: str) -> None:
        self._frame = frame
        self._by_text = {(row["role"], text_of(row)): row["metadata"]["row"] for row in reversed(rows)}
        self._fed = 0
        self._held: set[int] = set()
        self._summarised: set[int] = set()
        self._made: set[str] = set()
        self.lost = 0

    def view(self, fed: int, view: Sequence[Row]) -> None:
        """Take in the view that was served after `fed` rows."""
        held: set[int] = set()
        made: set[str] = set()
        for row in view:
            marks = row.get("metadata") or {}
            number = marks.get("row", self._by_text.get((row["role"], text_of(row))))
            if number is not None:
                held.add(number)
            elif text := text_of(row).replace(self._frame, "").strip():
                made.add(text)
        if made - self._made:
            self._summarised |= (self._held | set(range(self._fed, fed))) - held
        if not made:
            self._summarised.clear()
        self._summarised -= held
        self._fed, self._held, self._made = fed, held, made
        self.lost = len(set(range(fed)) - held - self._summarised)
