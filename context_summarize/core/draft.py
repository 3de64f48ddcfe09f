"""A plan under construction: each step makes its next view smaller, and a little worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from context_summarize.core.merging import merged
from context_summarize.core.nodes import Node
from context_summarize.core.shown_groups import HARD_FLOOR, short_length
from context_summarize.core.view_size import PlanInput, ViewSizer
from context_summarize.messages.reading import is_hook
from context_summarize.messages.rows import SYSTEM_ROLES

_AIMS = (0.9, 0.6, 0.3, 0.0)
"""Shares of the room that are aimed at where any rows must be shortened: the next row is to fit as well."""


class Draft:
    """The next view, before anything is summarised: the view as it stands, with the newest user message of now.

    Args:
        known_only: summarise and merge only as far as texts are known.
    """

    def __init__(self, given: PlanInput, *, known_only: bool = False) -> None:
        self._given = given
        self._known_only = known_only
        self.sizer = ViewSizer(given)
        history, standing = given.history, given.view
        self._pinned_rows = {
            row for group in map(history.rendered_group, given.pins) for row in range(group.start, group.end)
        }
        self.view = replace(
            standing,
            shown=(),
            lines=0,
            shortened={row: keep for row, keep in standing.shortened.items() if row not in self._pinned_rows},
            newest_user=history.users[-1] if history.users else None,
            pinned=given.pins,
            rows_at_compaction=len(history),
            notes=None,
            compactions=standing.compactions + 1,
        )
        self._shorten_first_user()
        self.level = 1
        """How far it had to go; see `Plan.level`."""
        self.has_notes = True
        """False where the row of notes had to go."""

    # --- its size ---------------------------------------------------------------------------------------------------

    def size(self) -> int:
        """Tokens of the view, system prompt aside."""
        return self.sizer.size(self.view) + self.notes_room()

    def fits(self) -> bool:
        """Whether the budget holds it."""
        return self.size() <= self._given.limits.view_room

    def notes_room(self) -> int:
        """Tokens of the row of notes; where it is to be written, what it may take: at most half of what is freed."""
        standing, most = self._given.view, self._given.limits.notes_room
        if not (self.has_notes and self.view.frontier):
            return 0
        if standing.notes and standing.keeps_notes(self.view.nodes, most):
            return standing.notes.tokens
        return max(0, min(most, (self.sizer.now - self.sizer.size(self.view)) // 2))

    # --- summarising ------------------------------------------------------------------------------------------------

    def summarise(self, keep_recent: int, goal: int) -> None:
        """Summarise the oldest segments until the view takes no more than `goal` tokens.

        Args:
            keep_recent: newest rows that stay verbatim.
        """
        limit, frontier = self._given.history.summarisable(keep_recent), self.view.frontier
        for leaf in self._given.builder.ahead(frontier):
            is_out_of_reach = leaf.end_group > limit or not self._may_show(leaf)
            if is_out_of_reach or self.size() <= goal:
                break
            self._go_on_with(self._merged((*self.view.nodes, leaf)), leaf.end_group)
        if self.view.frontier == frontier:
            self.merge()

    def summarise_remainder(self, keep_recent: int, focus: str | None = None) -> None:
        """Summarise what lies between the last closed segment and the newest rows: a segment that ends there."""
        limit = self._given.history.summarisable(keep_recent)
        node = self._given.builder.remainder(self.view.frontier, limit, focus)
        if node is not None:
            self._go_on_with((*self.view.nodes, node), limit)
            self.level = max(self.level, 2)

    def merge(self) -> None:
        """Merge summaries that exceed their share."""
        self.view = replace(self.view, nodes=self._merged(self.view.nodes))

    def _merged(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        limits = self._given.limits
        room = limits.share * limits.base - (limits.notes_room if nodes else 0)
        return merged(nodes, room, limits.fan_in, self._given.builder, self.sizer.sum_of, self._may_show)

    def _may_show(self, node: Node) -> bool:
        return not self._known_only or self.sizer.is_known(node)

    def _go_on_with(self, nodes: tuple[Node, ...], frontier: int) -> None:
        history, row = self._given.history, self.view.frontier_row
        if frontier > self.view.frontier:
            row = max(row, history.row_after(frontier, len(history) - self._given.limits.keep_recent))
        self.view = replace(self.view, nodes=nodes, frontier=frontier, frontier_row=row)
        self._shorten_first_user()

    # --- shortening -------------------------------------------------------------------------------------------------

    def shorten_results(self, keep_recent: int, longest: int | None) -> None:
        """Shorten tool results above `longest` tokens, those of the newest `keep_recent` rows aside."""
        if longest is None:
            return
        given, rows = self._given, dict[int, int]()
        for entry in given.groups.results(given.view.frontier_row, len(given.history) - keep_recent):
            if entry.origin is None or entry.origin in self._pinned_rows:
                continue
            if given.groups.short(entry, self.view).tokens > longest:
                rows[entry.origin] = short_length(longest)
        self._shorten(rows)

    def shorten_longest(self) -> None:
        """Shorten rows, longest first, until it fits: all rows above one length are cut to that length."""
        for aim in _AIMS:
            sizes = self._shortenable()
            fixed = self.size() - sum(sizes.values())
            room = int(aim * self._given.limits.view_room) - fixed
            length = max(HARD_FLOOR, _water_level(list(sizes.values()), room))
            self._shorten({row: length for row, size in sizes.items() if size > length})
            if self.fits():
                break

    def _shorten(self, rows: Mapping[int, int]) -> None:
        if rows:
            self.view = replace(self.view, shortened={**self.view.shortened, **rows})

    def _shortenable(self) -> dict[int, int]:
        """Sizes of all rows of the view but the host's system rows: half an instruction is worse than none."""
        groups, rows = self._given.groups, self._given.history.rows
        sizes = dict[int, int]()
        for group in (*groups.pins(self.view), *groups.from_row(self.view.frontier_row)):
            for entry in groups.shown(group).entries:
                row = None if entry.origin is None else rows[entry.origin]
                is_host_system = row and row.role in SYSTEM_ROLES and not is_hook(row.raw) and not row.ephemeral
                if entry.origin is not None and not is_host_system:
                    sizes[entry.origin] = groups.short(entry, self.view).tokens
        return sizes

    def _shorten_first_user(self) -> None:
        """A long first user message, once it is pinned, is head and tail of a tenth of the budget."""
        history, view = self._given.history, self.view
        if not view.frontier or not history.users or history.users[0] in view.pinned:
            return
        row, tenth = history.row_of(history.users[0]), max(HARD_FLOOR, self._given.limits.base // 10)
        is_pinned = row < view.frontier_row and history.count_row(row, self._given.groups.count) > tenth
        if is_pinned and view.shortened.get(row, tenth + 1) > tenth:
            self._shorten({row: tenth})


def _water_level(sizes: Sequence[int], room: int) -> int:
    """The largest length at which the sum of min(size, length) is within the room."""
    low, high = 0, max(sizes, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
