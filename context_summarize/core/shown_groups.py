"""The groups of one history as a view shows them, with their sizes; they grow at their end only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from context_summarize.background import copied
from context_summarize.core.entries import Entry, ShownGroup, group_entries, is_hidden, short_entry, shown_group
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.short_rows import HARD_FLOOR
from context_summarize.messages.json_text import compact_json
from context_summarize.messages.rows import SYSTEM_ROLES
from context_summarize.tokens.measure import Count


class ShownGroups:
    """What the closed groups from `first` on, the open ones and the pinned ones take in a view.

    Args:
        hides_system: stored system rows of the host are hidden behind a factory's prompt.
        first: position of the first group that may stand verbatim; of earlier ones only pinned ones are converted.
    """

    def __init__(self, history: History, count: Count, *, hides_system: bool = False, first: int = 0) -> None:
        self.hides_system = hides_system
        self.first = first
        self.history = history
        self._count = count
        self._groups: list[ShownGroup] = []
        self._open: tuple[int, ShownGroup | None] = (0, None)
        """Rows of the history, and its open group then."""
        self._seen_pins = 0
        self._pin_starts: list[int] = []
        """Where the groups of pinned rows start; system rows that are repeated have none."""
        self._system_texts: set[str] = set()
        self._pinned: dict[int, ShownGroup] = {}
        self._short: dict[tuple[int, int], Entry | None] = {}
        self._told: dict[int, int] = {}
        """Length of results → the row up to which longer ones were told."""

    # --- growing ----------------------------------------------------------------------------------------------------

    def backlog(self) -> int:
        """Characters of the rows in groups that have not been taken in, about."""
        at = self.first + len(self._groups)
        return self.history.characters_from(self.history.groups[at].start) if at < len(self.history.groups) else 0

    def advance(self) -> None:
        """Take in the groups that have closed since the last time."""
        history = self.history
        for at in range(self.first + len(self._groups), len(history.groups)):
            self._groups.append(self._convert(history.groups[at]))
        while self._seen_pins < len(history.pins):
            group = history.group_of(history.pins[self._seen_pins])
            if group is None:
                break
            self._take_pin(history.pins[self._seen_pins], group)
            self._seen_pins += 1

    def copy(self) -> ShownGroups:
        """The groups as they are now, over a copy of the history."""
        other = copied(self)
        other.history = self.history.copy()
        return other

    def take(self, ahead: ShownGroups) -> None:
        """Take over what a copy has converted, unless it has been overtaken."""
        self.history.take(ahead.history)
        self._short |= ahead._short
        self._pinned = ahead._pinned | self._pinned
        if ahead.first == self.first and len(ahead._groups) > len(self._groups):
            self._groups = ahead._groups
        if ahead._seen_pins > self._seen_pins:
            self._seen_pins, self._pin_starts = ahead._seen_pins, ahead._pin_starts
            self._system_texts = ahead._system_texts

    def _take_pin(self, index: int, group: Group) -> None:
        if is_hidden(self.history, index, self.hides_system) or self._is_repeated(index):
            return
        if not self._pin_starts or self._pin_starts[-1] != group.start:
            self.pinned(group)
            self._pin_starts.append(group.start)

    def _is_repeated(self, index: int) -> bool:
        """True for a system row whose equal stands before it: hosts may add their prompt again and again."""
        row = self.history.rows[index]
        if row.role not in SYSTEM_ROLES:
            return False
        content = row.raw.get("content")
        text = f"{row.role} {content}" if isinstance(content, str) else compact_json([row.role, content])
        if text in self._system_texts:
            return True
        self._system_texts.add(text)
        return False

    def _convert(self, group: Group) -> ShownGroup:
        return shown_group(group_entries(self.history, group, self._count, hides_system=self.hides_system))

    def forget_before(self, row: int) -> None:
        """Let go of what is shown of groups before this history row; pinned ones are kept."""
        position = self.history.group_position(row)
        if position > self.first:
            self._groups, self.first = self._groups[position - self.first :], position
            self._short = {at: short for at, short in self._short.items() if at[0] >= row}

    # --- the verbatim part ------------------------------------------------------------------------------------------

    def tokens_from(self, row: int) -> int:
        """Tokens of all groups that start at or after this history row, the open one included."""
        return sum(shown.tokens for shown in self.from_row(row))

    def closed(self, position: int) -> ShownGroup:
        """The closed group at this position."""
        return self._groups[position - self.first]

    def open_group(self) -> ShownGroup | None:
        """The run of open calls at the end; None if there is none."""
        rows = len(self.history)
        if self._open[0] != rows:
            groups = self.history.open_groups()
            self._open = (rows, self._convert(groups[0]) if groups else None)
        return self._open[1]

    def from_row(self, row: int) -> list[ShownGroup]:
        """All groups that start at or after this history row, the open one included."""
        position = max(self.history.group_position(row), self.first)
        shown = self.open_group()
        return [*self._groups[position - self.first :], *([shown] if shown else [])]

    def count_from(self, row: int) -> int:
        """How many these are."""
        closed = self.first + len(self._groups) - max(self.history.group_position(row), self.first)
        return closed + (self.open_group() is not None)

    def results(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """(history row, tokens) of the results in rows [first, end) that may be shortened."""
        for entry in (entry for shown in self.from_row(first) for entry in shown.entries):
            if entry.origin is not None and entry.tokens > HARD_FLOOR and first <= entry.origin < end:
                row = self.history.rows[entry.origin]
                if row.result_ids and not row.pinned:
                    yield entry.origin, entry.tokens

    def short_entry(self, index: int, keep: int) -> Entry | None:
        """A row of the history shortened to about `keep` tokens; None for a row that no view shows."""
        if (index, keep) not in self._short:
            self._short[index, keep] = self._shorten(index, keep)
        return self._short[index, keep]

    def new_results(self, first: int, end: int, longest: int) -> list[int]:
        """Results above `longest` tokens in rows [first, end) that were not told before."""
        begin = max(first, self._told.get(longest, 0))
        self._told[longest] = max(begin, end)
        return [row for row, tokens in self.results(begin, end) if tokens > longest]

    def shorten(self, rows: Iterable[int], keep: int) -> None:
        """Make the short forms of these rows."""
        for index in rows:
            self.short_entry(index, keep)

    def _shorten(self, index: int, keep: int) -> Entry | None:
        if is_hidden(self.history, index, self.hides_system):
            return None
        group = self.history.group_of(index) or self.history.open_groups()[0]
        return short_entry(self.history, group, index, keep, self._count)

    def short_size(self, index: int, keep: int) -> int:
        """Tokens of that row; a row that no view shows takes no room, shortened or not."""
        size = self.history.tokens[index]
        if 0 <= size <= keep:
            return size
        found = self.short_entry(index, keep)
        return found.tokens if found else 0

    def saving(self, index: int, keep: int) -> int:
        """Tokens that a view saves by showing about `keep` of a row."""
        short = self.short_entry(index, keep) if self.history.tokens[index] > keep else None
        return self.history.tokens[index] - short.tokens if short else 0

    # --- pins -------------------------------------------------------------------------------------------------------

    def pinned(self, group: Group) -> ShownGroup:
        """A group that stays verbatim beside its summary."""
        if group.start not in self._pinned:
            self._pinned[group.start] = self._convert(group)
        return self._pinned[group.start]

    def pins(
        self, frontier_row: int, frontier: int, newest_user: int | None, pinned: Iterable[int] = ()
    ) -> list[Group]:
        """The groups before the frontier that stand verbatim as well, in order: pins, first and newest user message."""
        history = self.history
        starts = set(self._pin_starts[: bisect_left(self._pin_starts, frontier_row)])
        starts.update(history.rendered_group(ordinal).start for ordinal in self.kept(frontier, newest_user, pinned))
        found = (history.group_of(start) for start in sorted(starts))
        return [group for group in found if group is not None]

    def kept(self, frontier: int, newest_user: int | None, pinned: Iterable[int]) -> list[int]:
        """Rendered groups that stay verbatim, as far as they stand before the frontier.

        They are the first and the newest user message, and those that the user has pinned.
        """
        users = self.history.users
        wanted = {ordinal for ordinal in (users[0] if users else None, newest_user) if ordinal is not None}
        wanted.update(pinned)
        return sorted(ordinal for ordinal in wanted if ordinal < frontier)
