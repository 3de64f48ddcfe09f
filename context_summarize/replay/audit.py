"""The checks of a replay: measures each request and checks the manager's promises from the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amplifier_core.message_models import Message

from context_summarize.messages.reading import broken_pairs, opens_with_user
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.result import Check, ReplayResult, RequestSize, named
from context_summarize.tokens.measure import measure


class Audit:
    """Measures and checks what a manager hands out, and writes it into the result. It reads only rows.

    Args:
        result: holds the rows that are fed.
        numbers: the message number of each of them; None for a row without one.
        count: tokens of a text.
    """

    def __init__(self, result: ReplayResult, numbers: Sequence[int | None], count: Callable[[str], int]) -> None:
        self._result = result
        self._numbers = numbers
        self._count = count
        self._opens = opens_with_user(result.rows) is not False
        self._sizes: list[int] = []
        self._kept = Check("History intact", "rows", "every row is kept as it was added")
        self._paired = Check("Pairs intact", "views", "each call is followed by its results")
        self._opened = Check("User first", "views", "the conversation opens with a user")
        self._valid = Check("Valid rows", "rows", "Amplifier accepts each row")
        self._within = Check("Within budget", "views", "no request is too large")
        result.checks = [self._kept, self._paired, self._opened, self._valid, self._within]

    def view(self, number: int, rows: list[JsonRow]) -> None:
        """Check the view that was requested before row `number`, counted from 1 over all rows."""
        result, where = self._result, f"the request before {named(self._numbers, number)}"
        same = _equal_prefix(result.last_view, rows)
        result.stable_rows += same
        result.compared_rows += len(result.last_view)
        # Rows that equal those of the previous view were checked and measured with it.
        invalid = [
            f"{where}, view row {at}: {problem}"
            for at, row in enumerate(rows[same:], same)
            if (problem := _refused(row)) is not None
        ]
        self._valid.note(invalid, len(rows))
        problems = [] if invalid else broken_pairs(rows)
        self._paired.note([f"{where}, view {problem}" for problem in problems], broken=1)
        opens = opens_with_user(rows) is not False or not (result.compactions or self._opens)
        self._opened.note([] if opens else [f"{where} does not open with a user message"])
        self._sizes[same:] = [measure(row, self._count) for row in rows[same:]]
        tokens = sum(self._sizes)
        over = tokens > result.budget
        self._within.note([f"{where} holds {tokens:,} tokens, the budget is {result.budget:,}"] if over else [])
        result.requests.append(RequestSize(number, tokens, self._grown(number - 1)))
        result.last_view = rows

    def history(self, kept: Sequence[JsonRow]) -> None:
        """Compare the rows that were fed with the rows that the manager holds."""
        fed = self._result.rows
        self._result.history_tokens = self._grown(len(fed))
        pairs = enumerate(zip(fed, kept, strict=False), 1)
        changed = [f"{named(self._numbers, at)} is not what was added" for at, (added, held) in pairs if added != held]
        if len(kept) != len(fed):
            changed.append(f"{len(fed):,} rows were added, {len(kept):,} are kept")
        self._kept.note(changed, len(fed))

    def _grown(self, rows: int) -> int:
        """Tokens of so many rows from the start, at least as many as at the last time."""
        result = self._result
        known = result.requests[-1] if result.requests else None
        start = known.row - 1 if known else 0
        return (known.history_tokens if known else 0) + sum(
            measure(row, self._count) for row in result.rows[start:rows]
        )


def _equal_prefix(earlier: Sequence[JsonRow], later: Sequence[JsonRow]) -> int:
    pairs = zip(earlier, later, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(earlier), len(later)))


def _refused(row: JsonRow) -> str | None:
    """Why the host's own message model refuses a row; None if it accepts it."""
    try:
        Message(**row)
    except (ValueError, TypeError) as error:
        return " ".join(str(error).split())
    return None
