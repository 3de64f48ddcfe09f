"""The rows of a request: groups as a view shows them, in a valid order, and the view that grows with the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from context_summarize.core.frames import no_summary, opening_row, row_hint
from context_summarize.core.groups import Group, answered_calls
from context_summarize.core.history import History
from context_summarize.core.view_state import ViewState
from context_summarize.messages.reading import is_hook, is_instruction
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.messages.shortening import cut_to_note, shortened_to
from context_summarize.messages.view_rows import continues, synthetic_result, view_row, without_continuation
from context_summarize.tokens.measure import Count, measure

HARD_FLOOR = 24
"""Tokens below which no row is shortened further."""


class Entry(NamedTuple):
    """One row of a view."""

    origin: int | None
    """Row of the history; None for a row that is made up to keep the view valid."""
    row: JsonRow
    tokens: int


class ShownGroups:
    """Converts each closed group once, when it is first asked for. Threads may use it at the same time.

    Args:
        hides_system: stored system rows of the host are hidden behind a factory's prompt.
        first: position of the first group that may stand verbatim: `advance` begins there.
    """

    def __init__(self, history: History, count: Count, *, hides_system: bool = False, first: int = 0) -> None:
        self.history = history
        self.hides_system = hides_system
        self.count = count
        self.next_group = first
        """Position of the first group that `advance` has not taken in."""
        self._closed: dict[int, tuple[Entry, ...]] = {}
        """By the row at which the group starts."""
        self._open: tuple[Group, tuple[Entry, ...]] | None = None
        """The open group that was shown last: each row makes another one."""
        self._short: dict[tuple[int, int], Entry] = {}
        """By row of the history and tokens kept of it."""

    def copy(self) -> ShownGroups:
        """The same groups, over their history as it is now."""
        other = copy(self)
        other.history = self.history.copy()
        return other

    def backlog(self) -> int:
        """Characters of the rows in groups that have not been taken in, about."""
        groups = self.history.groups
        return self.history.characters_from(groups[self.next_group].start) if self.next_group < len(groups) else 0

    def advance(self) -> None:
        """Convert the groups that have closed since the last time."""
        groups = self.history.groups
        for at in range(self.next_group, len(groups)):
            self.shown(groups[at])
        self.next_group = len(groups)

    def forget_before(self, row: int) -> None:
        """Let go of what is shown of groups before this history row."""
        closed, short = self._closed.copy(), self._short.copy()  # a thread may be adding to them
        self._closed = {start: shown for start, shown in closed.items() if start >= row}
        self._short = {at: entry for at, entry in short.items() if at[0] >= row}

    def from_row(self, row: int) -> list[Group]:
        """All groups that start at or after this history row, the open one included."""
        history = self.history
        return [*history.groups[history.group_position(row) :], *history.open_groups]

    def pins(self, view: ViewState) -> list[Group]:
        """The groups before the frontier that stand verbatim as well, in order.

        They are those of pinned rows, the first and the newest user message, and those that the user has pinned.
        """
        history, rows = self.history, self.history.rows
        found = dict[int, Group]()
        for group in map(history.groups.__getitem__, history.pins):
            if group.start >= view.frontier_row:
                break
            if any(rows[at].pinned and not self._is_hidden(at) for at in range(group.start, group.end)):
                found[group.start] = group
        for ordinal in (*history.users[:1], view.newest_user, *view.pinned):
            if ordinal is not None and ordinal < view.frontier:
                group = history.rendered_group(ordinal)
                found[group.start] = group
        return [found[start] for start in sorted(found)]

    def shown(self, group: Group) -> tuple[Entry, ...]:
        """A group as it is."""
        if not group.open:
            found = self._closed.get(group.start)
            if found is None:
                found = self._closed[group.start] = self._convert(group)
            return found
        found_open = self._open  # a thread may be at an earlier one
        if found_open is None or found_open[0] is not group:
            found_open = self._open = (group, self._convert(group))
        return found_open[1]

    def _convert(self, group: Group) -> tuple[Entry, ...]:
        """The call, all its results right after it, then what stood between.

        What stands between in an open group (nothing has followed its calls yet) is held back until the group closes:
        the results still to come would push it down, and the earlier view would be no prefix of the later one.
        """
        history = self.history
        answered = answered_calls(group) if group.answers else {}
        answers = {index: [call.id for call in calls] for index, calls in answered.items()}
        first, between = list[Entry](), list[Entry]()
        for index in range(group.start, group.end):
            row = None if self._is_hidden(index) else view_row(history.rows[index], answers.get(index))
            if row is not None:
                place = first if index == group.start or index in answers else between
                place.append(Entry(index, row, history.count_row(index, self.count)))
        first += [Entry(None, row, measure(row, self.count)) for row in map(synthetic_result, group.missing)]
        return tuple(first if group.open else first + between)

    def _is_hidden(self, index: int) -> bool:
        """True for a system row that the host's own prompt replaces."""
        row = self.history.rows[index]
        return self.hides_system and row.role == "system" and not (is_hook(row.raw) or is_instruction(row.raw))

    def entries(self, group: Group, view: ViewState) -> Sequence[Entry]:
        """The rows of a group in a view: some shortened, those before a compaction without continuation ids."""
        entries = self.shown(group)
        if view.shortened:
            entries = tuple(self.short(entry, view) for entry in entries)
        if group.start >= view.rows_at_compaction or not any(continues(entry.row) for entry in entries):
            return entries
        return [entry._replace(row=without_continuation(entry.row)) for entry in entries]

    def short(self, entry: Entry, view: ViewState) -> Entry:
        """A row as long as the view shows it."""
        keep = None if entry.origin is None else view.shortened.get(entry.origin)
        if entry.origin is None or keep is None or entry.tokens <= keep:
            return entry
        found = self._short.get((entry.origin, keep))
        if found is None:
            hint = row_hint(self.history, entry.origin) if self.history.recall else ""
            row, tokens = shortened_row(entry.row, entry.tokens, keep, self.count, hint)
            found = self._short[entry.origin, keep] = Entry(entry.origin, row, tokens)
        return found

    def results(self, first: int, end: int) -> Iterator[Entry]:
        """The results in history rows [first, end) that may be shortened."""
        rows = self.history.rows
        for group in self.from_row(first):
            if group.start >= end:
                break
            for entry in self.shown(group):
                if entry.origin is not None and entry.origin < end and entry.tokens > HARD_FLOOR:
                    row = rows[entry.origin]
                    if row.result_ids and not row.pinned:
                        yield entry


def short_length(longest: int) -> int:
    """Tokens that a result keeps which is longer than `longest`."""
    return max(HARD_FLOOR, longest // 4)


def shortened_row(row: JsonRow, size: int, keep: int, count: Count, hint: str) -> tuple[JsonRow, int]:
    """A copy of a view row of `size` tokens cut to about `keep`, and its tokens: head and tail, a note of what is gone.

    `hint` ends the note. What cannot be cut to that size by halves (many short texts, arguments of many fields) is cut
    to a note alone.
    """
    if size <= keep:
        return row, size
    share = keep / size
    for _ in range(4):
        out = shortened_to(row, share, hint)
        tokens = measure(out, count)
        if tokens <= keep:
            return out, tokens
        share *= 0.6
    hard = cut_to_note(row)
    least = measure(hard, count)
    return (hard, least) if least < tokens else (out, tokens)


class View:
    """The rows of one view state. Closed groups are taken in once; `rows()` copies what it hands out."""

    def __init__(self, state: ViewState, groups: ShownGroups) -> None:
        self.state = state
        self.groups = groups
        self._closed: list[Entry] = []
        self._open: list[Entry] = []
        """The calls at the end that may still get results, and those that they have."""
        self._closed_tokens = 0
        self.system_tokens = 0
        """Those of the tokens that stand in system rows, as `tokens()` has found last: providers send them apart."""
        self._next_group = groups.history.group_position(state.frontier_row)
        self._extend(self._head())
        self.left = self._closed_tokens
        """Those of the tokens that the last compaction has left, as `tokens()` has found last."""
        self.head_rows = len(self._closed)
        """How many rows stand for what is summarised: nodes, and the pins beside them."""

    def _head(self) -> Iterator[Entry]:
        """Nodes in order, each with the pins of its range before it; the row of notes last, so that all else stays."""
        state, history, notes = self.state, self.groups.history, self.state.notes
        pins = self.groups.pins(state)
        if state.compactions and not history.opens_with_user():
            yield self._own(opening_row())
        if state.is_bare:
            for group in pins:
                yield from self.groups.entries(group, state)
            yield self._own(no_summary(history, state.frontier))
            return
        for shown in state.shown:
            end = history.rendered_group(shown.node.end_group - 1).end
            while pins and pins[0].start < end:
                yield from self.groups.entries(pins.pop(0), state)
            yield Entry(None, shown.row, shown.tokens)
        for group in pins:
            yield from self.groups.entries(group, state)
        if notes is not None:
            yield Entry(None, notes.row, notes.tokens)

    def _own(self, row: JsonRow) -> Entry:
        return Entry(None, row, measure(row, self.groups.count))

    def _extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._closed.append(entry)
            self._closed_tokens += entry.tokens
            if entry.row["role"] == "system":
                self.system_tokens += entry.tokens

    def tokens(self) -> int:
        """Tokens of the view with what has come since the last time, system prompt aside."""
        history = self.groups.history
        while self._next_group < len(history.groups):
            group = history.groups[self._next_group]
            self._next_group += 1
            self._extend(self.groups.entries(group, self.state))
            if group.start < self.state.rows_at_compaction:
                self.left = self._closed_tokens
        self._open = [entry for group in history.open_groups for entry in self.groups.entries(group, self.state)]
        return self._closed_tokens + sum(entry.tokens for entry in self._open)

    def entries(self) -> list[Entry]:
        """The rows with where each comes from. They are shared with the view: only to be read."""
        self.tokens()
        return [*self._closed, *self._open]

    @property
    def open_rows(self) -> int:
        """How many rows at the end belong to calls that may still get their results."""
        return len(self._open)

    def rows(self, system_prompt: str | None) -> list[JsonRow]:
        """A copy of the rows, system prompt first."""
        head = [{"role": "system", "content": system_prompt, "metadata": {}}] if system_prompt else []
        return [*head, *(copy_json(entry.row) for entry in self.entries())]

    def __len__(self) -> int:
        return len(self.entries())

    def largest(self, system_tokens: int = 0, most: int = 3) -> list[dict[str, Any]]:
        """The largest rows, as events name them: position in the view, role, tokens."""
        head = [{"row": 0, "role": "system", "tokens": system_tokens}] if system_tokens else []
        found = [
            {"row": at, "role": entry.row["role"], "tokens": entry.tokens}
            for at, entry in enumerate(self.entries(), start=len(head))
        ]
        return sorted([*head, *found], key=lambda item: -item["tokens"])[:most]
