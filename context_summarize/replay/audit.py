"""The checks of a replay: measures each view and checks the manager's promises from the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amplifier_core.message_models import Message

from context_summarize.messages.pairs import broken_pairs, opens_with_user
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.numbering import message_numbers, named
from context_summarize.replay.result import Check, ReplayResult, RequestLine
from context_summarize.tokens.measure import measure


class Audit:
    """Measures and checks the views of a manager. It reads only the rows."""

    def __init__(self, fed: Sequence[JsonRow], result: ReplayResult, count: Callable[[str], int]) -> None:
        self._fed = fed
        self._opens = opens_with_user(fed) is not False
        self._result = result
        self._count = count
        self._numbers = message_numbers(fed)
        self._previous: list[JsonRow] = []
        self._sizes: list[int] = []
        self._kept = Check("History intact", "rows", "every row is kept as it was added")
        self._paired = Check("Pairs intact", "views", "each call is followed by its results")
        self._opened = Check("User first", "views", "the conversation opens with a user")
        self._valid = Check("Valid rows", "rows", "Amplifier accepts each row")
        self._within = Check("Within budget", "views", "no request is too large")
        result.checks = [self._kept, self._paired, self._opened, self._valid, self._within]

    def view(self, number: int, rows: list[JsonRow], *, made_compaction: bool) -> None:
        """Check the view that was requested before row `number`, counted from 1 over all rows."""
        result, where = self._result, f"the request before {named(self._numbers, number)}"
        same = _equal_prefix(self._previous, rows)
        if result.requests:
            result.stable_rows += same
            result.compared_rows += len(self._previous)
        result.requests += 1
        # Rows that equal those of the previous view were checked and measured with it.
        invalid = [
            f"{where}, view row {at}: {problem}"
            for at, row in enumerate(rows[same:], same)
            if (problem := _refused(row)) is not None
        ]
        self._valid.note(invalid, len(rows))
        problems = [] if invalid else broken_pairs(rows)
        self._paired.note([f"{where}, view {problem}" for problem in problems], broken=1)
        opens = opens_with_user(rows) is not False or not (made_compaction or self._opens)
        self._opened.note([] if opens else [f"{where} does not open with a user message"])
        self._sizes[same:] = [measure(row, self._count) for row in rows[same:]]
        tokens = sum(self._sizes)
        result.largest_view = max(result.largest_view, tokens)
        over = tokens > result.budget
        self._within.note([f"{where} holds {tokens:,} tokens, the budget is {result.budget:,}"] if over else [])
        answer = self._numbers[number - 1] if number <= len(self._numbers) else None
        result.request_lines.append(RequestLine(number, tokens, len(rows), answer, sum(self._sizes[:same])))
        self._previous = result.last_view = rows
        result.last_sizes = list(self._sizes)

    def history(self, kept: Sequence[JsonRow]) -> None:
        """Compare the added rows with the rows that the manager holds."""
        fed, result = self._fed, self._result
        result.messages = len(fed)
        result.rows, result.row_tokens = list(fed), [measure(row, self._count) for row in fed]
        result.history_tokens = sum(result.row_tokens)
        pairs = enumerate(zip(fed, kept, strict=False), 1)
        changed = [f"{named(self._numbers, at)} is not what was added" for at, (added, held) in pairs if added != held]
        if len(kept) != len(fed):
            changed.append(f"{len(fed):,} rows were added, {len(kept):,} are kept")
        self._kept.note(changed, len(fed))


def _equal_prefix(earlier: Sequence[JsonRow], later: Sequence[JsonRow]) -> int:
    same = 0
    for a, b in zip(earlier, later, strict=False):
        if a != b:
            break
        same += 1
    return same


def _refused(row: JsonRow) -> str | None:
    """Why the host's own message model refuses a row; None if it accepts it."""
    try:
        Message(**row)
    except (ValueError, TypeError) as error:
        return " ".join(str(error).split())
    return None
