"""What a plan is made from, and how large the views are that it may choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from context_summarize.core.frames import one_line_size, opening_row
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.limits import Limits
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Place
from context_summarize.core.shown_groups import ShownGroups
from context_summarize.core.view_state import ViewState
from context_summarize.tokens.measure import measure

FRAME_TOKENS = 70
"""Estimate of what the frame adds to a summary whose row has not been built yet."""

SizeOf = Callable[[Node], int | None]
"""Tokens of the row that stands for a node; None while its text is not known. Asking starts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that a plan is made from. Nothing in it is changed by planning."""

    groups: ShownGroups
    """Of the history that is planned for."""
    builder: NodeBuilder
    view: ViewState
    """The view as it stands."""
    limits: Limits
    pins: tuple[int, ...] = ()
    """Rendered groups that the user wants verbatim from the next compaction on."""
    size_of: SizeOf

    @property
    def history(self) -> History:
        """Of these groups."""
        return self.groups.history

    def as_it_is(self) -> PlanInput:
        """The same for a plan that a thread makes: rows may be added meanwhile."""
        return replace(self, groups=self.groups.copy(), builder=self.builder.copy())


class ViewSizer:
    """Measures views in tokens, system prompt aside. A text that is not known has an estimate, throughout one plan."""

    def __init__(self, given: PlanInput) -> None:
        self._given = given
        self._known: dict[Place, int | None] = {}
        self._opening = measure(opening_row(), given.groups.count)
        self._verbatim = given.groups.from_row(given.view.frontier_row)
        self._sized: ViewState | None = None
        """The view that was measured last, its size, and the tokens of each of these groups in it."""
        self._size, self._sizes = 0, list[int]()
        self.now = self.size(given.view)
        """The view as it stands."""

    def size(self, view: ViewState) -> int:
        """Tokens of a view; of a plan's next view without its row of notes."""
        if view is self._sized:
            return self._size
        if self._sized is None or view.shortened is not self._sized.shortened:
            self._sizes = [self._group_size(group, view) for group in self._verbatim]
        history, pins = self._given.history, self._given.groups.pins(view)
        summarised = history.group_position(view.frontier_row) - history.group_position(self._given.view.frontier_row)
        verbatim = sum(self._sizes[summarised:]) + sum(self._group_size(group, view) for group in pins)
        opening = 0 if self._opens(view, pins, self._verbatim[summarised:]) else self._opening
        notes = view.notes.tokens if view.notes else 0
        self._sized, self._size = view, verbatim + self._nodes_size(view) + opening + notes
        return self._size

    def _group_size(self, group: Group, view: ViewState) -> int:
        groups = self._given.groups
        shown = groups.shown(group)
        saved = (entry.tokens - groups.short(entry, view).tokens for entry in shown.entries) if view.shortened else ()
        return shown.tokens - sum(saved)

    def is_known(self, node: Node) -> bool:
        """Whether the text of a node is there."""
        return self._known_size(node) is not None

    def _known_size(self, node: Node) -> int | None:
        if node.place not in self._known:
            self._known[node.place] = self._given.size_of(node)
        return self._known[node.place]

    def sum_of(self, nodes: Sequence[Node]) -> int:
        """Tokens of the rows of these nodes."""
        known = ((node, self._known_size(node)) for node in nodes)
        return sum(node.summary_tokens + FRAME_TOKENS if size is None else size for node, size in known)

    def _nodes_size(self, view: ViewState) -> int:
        if view.shown:  # a fallback among them is to be made anew, and does not count as known
            return sum(shown.tokens for shown in view.shown)
        history, count = self._given.history, self._given.groups.count
        lines = sum(one_line_size(history, node, count) for node in view.nodes[: view.lines])
        return lines + self.sum_of(view.nodes[view.lines :])

    def _opens(self, view: ViewState, pins: Sequence[Group], verbatim: Sequence[Group]) -> bool:
        """Whether the view needs no row of its own to open with a user message."""
        if not view.compactions:
            return True
        shown = (self._given.groups.shown(group).opens for group in (*pins, *verbatim))
        return next((opens for opens in shown if opens is not None), True)
