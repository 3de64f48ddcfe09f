"""A plan under construction: each step makes its view smaller, and a little worse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from context_summarize.core.entries import HARD_FLOOR, short_length
from context_summarize.core.frames import no_summary, opening_row
from context_summarize.core.groups import Group
from context_summarize.core.limits import Limits
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, View, merge_node, next_run
from context_summarize.core.render import render, results, short, shown, verbatim_groups
from context_summarize.core.segments import Segments
from context_summarize.messages.rows import SYSTEM_ROLES
from context_summarize.tokens.measure import measure

FRAME_TOKENS = 70
"""Estimate of the frame's tokens for a summary that has no row yet."""
_FILLED = 0.9
"""Merging goes on until summaries take at most this part of their share."""
_AIMS = (0.9, 0.6, 0.3, 0.0)
"""Shares of the room to aim at when any row may be shortened. A share below 1 leaves room for the next row. If the
view still does not fit, rows are cut again with the next share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that a plan is made from. Planning changes nothing in it."""

    log: Log
    segments: Segments | None
    """None before the first request whose budget is known."""
    view: View
    """The current view."""
    limits: Limits
    pins: tuple[int, ...] = ()
    """Rendered groups that the user wants verbatim from the next compaction on."""
    size_of: Callable[[Node], int | None]
    """Returns the tokens of the row that represents a node; None while its text is not known. Starts no call."""


class Draft:
    """Begins with the current view and the present pins; its steps make the next view.

    Args:
        known_only: True to summarise and merge only as far as texts are known.
    """

    def __init__(self, given: PlanInput, *, known_only: bool = False) -> None:
        self._given = given
        self._known_only = known_only
        log, current = given.log, given.view
        self._opening = 0 if log.opens_with_user() else measure(opening_row(), log.count)
        self._from_frontier = log.from_row(current.frontier_row)
        self.size_before = render(log, current).tokens
        """Tokens of the current view."""
        self._pinned_rows = {
            row for group in map(log.rendered_group, given.pins) for row in range(group.start, group.end)
        }
        self.view = replace(
            current,
            shown=(),
            is_bare=False,
            shortened={row: keep for row, keep in current.shortened.items() if row not in self._pinned_rows},
            newest_user=log.users[-1] if log.users else None,
            pinned=given.pins,
            rows_at_compaction=len(log),
            notes=None,
            compactions=current.compactions + 1,
        )
        self._shortened: Mapping[int, int] | None = None
        self._sizes = list[int]()
        """The size of each group of `_from_frontier` while the rows in `_shortened` are cut."""
        self._shorten_first_user()
        self.level = 1
        """The last step taken; see `Plan.level`."""
        self.has_notes = True
        """False if the view has no room for the row of notes."""

    def size(self) -> int:
        """Returns the tokens of the view, without the system prompt."""
        size = self._size()
        return size + self._notes_room(size)

    def fits(self) -> bool:
        """Returns True if the view fits the budget."""
        return self.size() <= self._given.limits.view_room

    def notes_room(self) -> int:
        """Returns the tokens that the row of notes may take: at most half of those that this plan frees."""
        return self._notes_room(self._size())

    def _notes_room(self, size: int) -> int:
        if not (self.has_notes and self.view.frontier):
            return 0
        return max(0, min(self._given.limits.notes_room, (self.size_before - size) // 2))

    def _size(self) -> int:
        """Returns the tokens of the view without its row of notes."""
        log, view = self._given.log, self.view
        if view.shortened is not self._shortened:
            self._sizes, self._shortened = [*map(self._group_size, self._from_frontier)], view.shortened
        summarised = log.group_position(view.frontier_row) - log.group_position(self._given.view.frontier_row)
        beside = sum(map(self._group_size, verbatim_groups(log, view)))
        summaries = self._size_of(view.nodes)
        if view.is_bare:
            summaries = measure(no_summary(log, view.frontier), log.count)
        return self._opening + summaries + beside + sum(self._sizes[summarised:])

    def _group_size(self, group: Group) -> int:
        return sum(entry.tokens for entry in shown(self._given.log, group, self.view))

    def _size_of(self, nodes: Sequence[Node]) -> int:
        """Returns the tokens of the rows of these nodes."""
        known = ((node, self._given.size_of(node)) for node in nodes)
        return sum(node.summary_tokens + FRAME_TOKENS if size is None else size for node, size in known)

    def missing(self) -> tuple[Node, ...]:
        """Returns the nodes whose texts are not known."""
        return tuple(node for node in self.view.nodes if self._given.size_of(node) is None)

    def summarise(self, keep_recent: int, goal: int) -> None:
        """Summarises the oldest segments until the view takes no more than `goal` tokens."""
        limit, frontier, segments = self._given.log.summarisable(keep_recent), self.view.frontier, self._given.segments
        for leaf in segments.from_group(frontier) if segments else ():
            is_out_of_reach = leaf.end_group > limit or not self._may_show(leaf)
            if is_out_of_reach or self.size() <= goal:
                break
            self._move_frontier(self._merged((*self.view.nodes, leaf)), leaf.end_group)
        if self.view.frontier == frontier:
            self.merge()

    def summarise_remainder(self, keep_recent: int, focus: str | None = None) -> None:
        """Summarises the rows between the last closed segment and the newest rows, as one short segment."""
        limit, segments = self._given.log.summarisable(keep_recent), self._given.segments
        node = segments.remainder(self.view.frontier, limit, focus) if segments else None
        if node is not None:
            self._move_frontier((*self.view.nodes, node), limit)
            self.level = max(self.level, 2)

    def merge(self) -> None:
        """Merges summaries that exceed their share."""
        self.view = replace(self.view, nodes=self._merged(self.view.nodes))

    def _merged(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """Returns the nodes, merged until they are within their share or no merge is left."""
        limits, segments = self._given.limits, self._given.segments
        room = limits.share * limits.base - (limits.notes_room if nodes else 0)
        if segments is None or self._size_of(nodes) <= room:
            return nodes
        cutting = segments.cutting
        while self._size_of(nodes) > _FILLED * room:
            run = next_run(nodes, limits.fan_in)
            if not run or not self._may_show(made := merge_node(run, cutting.merge_hash, cutting.summary_tokens)):
                break
            before = [node for node in nodes if node.end_group <= made.first_group]
            nodes = (*before, made, *(node for node in nodes if node.first_group >= made.end_group))
        return nodes

    def _may_show(self, node: Node) -> bool:
        return not self._known_only or self._given.size_of(node) is not None

    def _move_frontier(self, nodes: tuple[Node, ...], frontier: int) -> None:
        log = self._given.log
        row = max(self.view.frontier_row, log.row_after(frontier, len(log) - self._given.limits.keep_recent))
        self.view = replace(self.view, nodes=nodes, frontier=frontier, frontier_row=row)
        self._shorten_first_user()

    def shorten_results(self, untouched_rows: int, longest: int | None, goal: int | None = None) -> None:
        """Shortens tool results above `longest` tokens, except those among the newest `untouched_rows` rows.

        Args:
            goal: tokens; if given, only the longest results are cut, and only until the view has this size.
        """
        log, limits, sizes = self._given.log, self._given.limits, dict[int, int]()
        if longest is None or limits.shorten_above is None:
            return
        for entry in results(log, self.view.frontier_row, len(log) - untouched_rows):
            size = short(log, entry, self.view).tokens
            if entry.origin is not None and entry.origin not in self._pinned_rows and size > longest:
                sizes[entry.origin] = size
        length = short_length(limits.shorten_above)
        if goal is not None:
            fixed = self.size() - sum(sizes.values())
            length = max(length, _water_level(sizes.values(), goal - fixed))
        self._shorten({row: length for row, size in sizes.items() if size > length})

    def shorten_longest(self) -> None:
        """Shortens the longest rows until the view fits: all rows above one length are cut to that length."""
        for aim in _AIMS:
            sizes = self._shortenable()
            fixed = self.size() - sum(sizes.values())
            room = int(aim * self._given.limits.view_room) - fixed
            length = max(HARD_FLOOR, _water_level(sizes.values(), room))
            self._shorten({row: length for row, size in sizes.items() if size > length})
            if self.fits():
                break

    def _shorten(self, rows: Mapping[int, int]) -> None:
        if rows:
            self.view = replace(self.view, shortened={**self.view.shortened, **rows})

    def _shortenable(self) -> dict[int, int]:
        """Returns the sizes of all rows except the host's system rows: half an instruction is worse than none."""
        log, sizes = self._given.log, dict[int, int]()
        for group in (*verbatim_groups(log, self.view), *log.from_row(self.view.frontier_row)):
            for entry in shown(log, group, self.view):
                if entry.origin is None:
                    continue
                row = log.rows[entry.origin]
                if not (row.role in SYSTEM_ROLES and row.pinned):
                    sizes[entry.origin] = entry.tokens
        return sizes

    def _shorten_first_user(self) -> None:
        """Shortens a long first user message to a tenth of the base once the frontier has passed it."""
        log, view = self._given.log, self.view
        if not view.frontier or not log.users or log.users[0] in view.pinned:
            return
        row, tenth = log.row_of(log.users[0]), max(HARD_FLOOR, self._given.limits.base // 10)
        shown_tokens = view.shortened.get(row, log.count_row(row))
        if row < view.frontier_row and shown_tokens > tenth:
            self._shorten({row: tenth})


def _water_level(sizes: Iterable[int], room: int) -> int:
    """Returns the largest length for which the sum of min(size, length) is within the room."""
    smallest_first = sorted(sizes)
    for at, size in enumerate(smallest_first):
        left = len(smallest_first) - at
        if size * left > room:
            return room // left
        room -= size
    return max(smallest_first, default=0)
