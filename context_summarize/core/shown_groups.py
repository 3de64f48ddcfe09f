"""The groups of one history as a view shows them, with prefix sums of their sizes; they grow at their end only."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from context_summarize.background import Steps, finished
from context_summarize.core.entries import (
    Entry,
    ShownGroup,
    answers_by_row,
    entry_steps,
    is_hidden,
    row_steps,
    shown_group,
)
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.short_rows import HARD_FLOOR, short_length
from context_summarize.messages.json_text import compact_json
from context_summarize.messages.rows import SYSTEM_ROLES
from context_summarize.tokens.measure import Count

_AT_ONCE = 10_000
"""Tokens of rows whose short forms one plan makes without giving the event loop its turn."""


class ShownGroups:
    """What the closed groups from `first` on, the open ones and the pinned ones take in a view.

    Args:
        hides_system: stored system rows of the host are hidden behind a factory's prompt.
        first: position of the first group that may stand verbatim; of earlier ones only pinned ones are converted.
    """

    def __init__(self, history: History, count: Count, *, hides_system: bool = False, first: int = 0) -> None:
        self.hides_system = hides_system
        self._history = history
        self._count = count
        self._first = first
        self._groups: list[ShownGroup] = []
        self._sums = array("q", [0])
        """Tokens of the groups before each one, from `first` on."""
        self._results = array("q")
        """Rows of results that may be shortened, in order."""
        self._open: tuple[int, ShownGroup | None] = (0, None)
        """Rows of the history, and its open group then."""
        self._seen_pins = 0
        self._pin_starts: list[int] = []
        self._pin_sums = array("q", [0])
        self._opening_pin: int | None = None
        """Place among the pins of the first one that holds a row of the conversation."""
        self._system_texts: set[str] = set()
        self._pinned: dict[int, ShownGroup] = {}
        self._short: dict[tuple[int, int], Entry | None] = {}
        self._answers: tuple[Group | None, dict[int, list[str]]] = (None, {})
        """The group whose rows were shortened last, and what they answer."""
        self._unmade: list[tuple[int, int]] | None = None
        self._at_once = 0

    # --- growing ----------------------------------------------------------------------------------------------------

    def advance(self) -> Steps[None]:
        """Take in the groups that have closed since the last time."""
        while (at := self._first + len(self._groups)) < len(self._history.groups):
            shown = yield from self._converting(self._history.groups[at])
            if self._first + len(self._groups) == at:  # or somebody else has taken it in meanwhile
                self._take(shown)
            yield
        while (seen := self._seen_pins) < len(self._history.pins):
            group = self._history.group_of(self._history.pins[seen])
            if group is None:
                break
            shown = self._pinned.get(group.start) or (yield from self._converting(group))
            if self._seen_pins == seen:
                self._take_pin(self._history.pins[seen], group, shown)
            yield
        yield from self._advance_open()

    def _advance_open(self) -> Steps[None]:
        """Convert the open run: it may hold thousands of calls."""
        while self._open[0] != (rows := len(self._history)):
            groups = self._history.open_groups()
            shown = (yield from self._converting(groups[0])) if groups else None
            if rows == len(self._history):
                self._open = (rows, shown)

    def catch_up(self) -> None:
        """Take in all groups that have closed since the last time."""
        finished(self.advance())

    def _take(self, shown: ShownGroup) -> None:
        self._groups.append(shown)
        self._sums.append(self._sums[-1] + shown.tokens)
        self._results.extend(row for row, _ in self._shortenable(shown))

    def _shortenable(self, shown: ShownGroup) -> Iterator[tuple[int, int]]:
        """(history row, tokens) of the results in a group that may be shortened."""
        for entry in shown.entries:
            if entry.origin is not None and entry.tokens > HARD_FLOOR:
                row = self._history.rows[entry.origin]
                if row.result_ids and not row.pinned:
                    yield entry.origin, entry.tokens

    def _take_pin(self, index: int, group: Group, shown: ShownGroup) -> None:
        """Take in one pinned row."""
        self._seen_pins += 1
        if is_hidden(self._history, index, self.hides_system) or self._is_repeated(index):
            return
        if not self._pin_starts or self._pin_starts[-1] != group.start:
            shown = self._pinned.setdefault(group.start, shown)
            if self._opening_pin is None and shown.opens is not None:
                self._opening_pin = len(self._pin_starts)
            self._pin_starts.append(group.start)
            self._pin_sums.append(self._pin_sums[-1] + shown.tokens)

    def _is_repeated(self, index: int) -> bool:
        """True for a system row whose equal stands before it: hosts may add their prompt again and again."""
        row = self._history.rows[index]
        if row.role not in SYSTEM_ROLES:
            return False
        content = row.raw.get("content")
        text = f"{row.role} {content}" if isinstance(content, str) else compact_json([row.role, content])
        if text in self._system_texts:
            return True
        self._system_texts.add(text)
        return False

    def _convert(self, group: Group) -> ShownGroup:
        return finished(self._converting(group))

    def _converting(self, group: Group) -> Steps[ShownGroup]:
        return shown_group((yield from entry_steps(self._history, group, self._count, hides_system=self.hides_system)))

    def forget_before(self, row: int) -> None:
        """Let go of what is shown of groups before this history row; pinned ones are kept."""
        position = self._history.group_position(row)
        gone = position - self._first
        if gone > 0:
            self._groups = self._groups[gone:]
            self._sums = self._sums[gone:]
            self._first = position
            self._results = self._results[bisect_left(self._results, row) :]
            self._short = {at: short for at, short in self._short.items() if at[0] >= row or self.is_pinned(at[0])}

    # --- the verbatim part ------------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """Position of the first group that is known here."""
        return self._first

    def tokens_from(self, row: int) -> int:
        """Tokens of all groups that start at or after this history row, the open one included."""
        position = max(self._history.group_position(row), self._first)
        shown = self.open_group()
        return self._sums[-1] - self._sums[position - self._first] + (shown.tokens if shown else 0)

    def closed(self, position: int) -> ShownGroup:
        """The closed group at this position."""
        return self._groups[position - self._first]

    def open_group(self) -> ShownGroup | None:
        """The run of open calls at the end; None if there is none."""
        rows = len(self._history)
        if self._open[0] != rows:
            groups = self._history.open_groups()
            self._open = (rows, self._convert(groups[0]) if groups else None)
        return self._open[1]

    def from_row(self, row: int) -> Iterator[ShownGroup]:
        """All groups that start at or after this history row, the open one included."""
        position = max(self._history.group_position(row), self._first)
        yield from self._groups[position - self._first :]
        shown = self.open_group()
        if shown is not None:
            yield shown

    def results(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """(history row, tokens) of the results in rows [first, end) that may be shortened."""
        rows = self._results
        for at in range(bisect_left(rows, first), bisect_left(rows, end)):
            yield rows[at], self._history.tokens[rows[at]]
        shown = self.open_group()
        if shown:
            yield from ((row, tokens) for row, tokens in self._shortenable(shown) if first <= row < end)

    def short_entry(self, index: int, keep: int) -> Entry | None:
        """A row of the history shortened to about `keep` tokens; None for a row that no view shows."""
        if (index, keep) not in self._short:
            finished(self._shorten(index, keep))
        return self._short[index, keep]

    def short_size(self, index: int, keep: int) -> int:
        """Tokens of that row; a row that no view shows takes no room, shortened or not. See `deferring`."""
        size = self._history.tokens[index]
        if 0 <= size <= keep:
            return size
        if self._unmade is not None and (index, keep) not in self._short:
            self._at_once -= size
            if self._at_once < 0:
                self._unmade.append((index, keep))
                return keep
        found = self.short_entry(index, keep)
        return found.tokens if found else 0

    @contextmanager
    def deferring(self) -> Iterator[list[tuple[int, int]]]:
        """Within, `short_size` estimates where making the short form takes long; the list tells which are unmade."""
        self._unmade, self._at_once = [], _AT_ONCE
        try:
            yield self._unmade
        finally:
            self._unmade = None

    def make_short(self, unmade: Iterable[tuple[int, int]]) -> Steps[None]:
        """Make these short forms: (history row, tokens kept)."""
        for index, keep in unmade:
            if (index, keep) not in self._short:
                yield from self._shorten(index, keep)
            yield

    def _shorten(self, index: int, keep: int) -> Steps[None]:
        history = self._history
        if is_hidden(history, index, self.hides_system):
            self._short[index, keep] = None
            return
        group = history.group_of(index) or history.open_groups()[0]
        if self._answers[0] != group:
            self._answers = (group, answers_by_row(group))
        answered = self._answers[1].get(index)
        self._short[index, keep] = yield from row_steps(history, index, answered, keep, self._count)

    def shorten_results(self, first: int, end: int, longest: int) -> Steps[None]:
        """Make the short forms of results above `longest` tokens in rows [first, end), as a plan will ask for them."""
        for index, tokens in self.results(first, end):
            if tokens > longest:
                yield from self.make_short([(index, short_length(longest))])

    def saved(self, shortened: Mapping[int, int]) -> list[tuple[int, int]]:
        """(history row, tokens saved) of each shortened row, in order."""
        rows = sorted(index for index in shortened if index < len(self._history))
        sizes = ((index, self._history.tokens[index]) for index in rows)
        return [(index, size - self.short_size(index, shortened[index])) for index, size in sizes if size >= 0]

    # --- pins -------------------------------------------------------------------------------------------------------

    def pinned(self, group: Group) -> ShownGroup:
        """A group that stays verbatim beside its summary."""
        found = self._pinned.get(group.start)
        if found is None:
            found = self._pinned[group.start] = self._convert(group)
        return found

    def is_pinned(self, row: int) -> bool:
        """True for a row whose group stays verbatim because a row of it is pinned."""
        group = self._history.group_of(row)
        if group is None:
            return False
        at = bisect_left(self._pin_starts, group.start)
        return at < len(self._pin_starts) and self._pin_starts[at] == group.start

    def pin_tokens(self, row: int) -> int:
        """Tokens of the pinned groups that start before this history row, users' messages aside."""
        return self._pin_sums[bisect_left(self._pin_starts, row)]

    def opening_pin(self, row: int) -> tuple[int, bool] | None:
        """(start, opens) of the first pinned group before `row` that holds a row of the conversation."""
        if self._opening_pin is None or self._pin_starts[self._opening_pin] >= row:
            return None
        start = self._pin_starts[self._opening_pin]
        return start, bool(self._pinned[start].opens)

    def pins(
        self, frontier_row: int, frontier: int, newest_user: int | None, pinned: Iterable[int] = ()
    ) -> list[Group]:
        """The groups before the frontier that stand verbatim as well, in order: pins, first and newest user message."""
        history = self._history
        starts = set(self._pin_starts[: bisect_left(self._pin_starts, frontier_row)])
        starts.update(history.rendered_group(ordinal).start for ordinal in self.kept(frontier, newest_user, pinned))
        found = (history.group_of(start) for start in sorted(starts))
        return [group for group in found if group is not None]

    def kept(self, frontier: int, newest_user: int | None, pinned: Iterable[int]) -> list[int]:
        """Rendered groups that stay verbatim, as far as they stand before the frontier.

        They are the first and the newest user message, and those that the user has pinned.
        """
        users = self._history.users
        wanted = {ordinal for ordinal in (users[0] if users else None, newest_user) if ordinal is not None}
        wanted.update(pinned)
        return sorted(ordinal for ordinal in wanted if ordinal < frontier)
