"""A plan under construction, and its size: what a view would take if the draft were carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from context_summarize.core.entries import ShownGroup
from context_summarize.core.frames import one_line_size, opening_row
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.limits import Limits
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Place
from context_summarize.core.short_rows import HARD_FLOOR
from context_summarize.core.shown_groups import ShownGroups
from context_summarize.core.view_state import ViewState
from context_summarize.tokens.measure import Count, measure

FRAME_TOKENS = 70
"""Estimate of what the frame adds to a summary whose row has not been built yet."""

SizeOf = Callable[[Node], int | None]
"""Tokens of the row that stands for a node; None while its text is not known. Asking starts nothing."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What the next view would show."""

    nodes: tuple[Node, ...]
    frontier: int
    newest_user: int | None
    shortened: Mapping[int, int] = field(default_factory=dict)
    """History row → tokens kept of it."""
    pinned: tuple[int, ...] = ()
    """Rendered groups that the user has pinned."""
    segments: int = 0
    """Segments and rests that it summarises."""
    notes: bool = True
    """False where the row of notes had to go."""
    lines: int = 0
    """How many of the oldest nodes are shown as one line only."""
    level: int = 1
    """How far it had to go: 1 summarise, 2 rest, 3 keep_recent halved, 4 rows shortened, 5 one-line nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that a plan is made from. Nothing in it is changed by planning."""

    history: History
    builder: NodeBuilder
    groups: ShownGroups
    """Caught up with the history."""
    view: ViewState
    limits: Limits
    pins: tuple[int, ...] = ()
    """Rendered groups that the user wants verbatim from the next compaction on."""
    size_of: SizeOf
    count: Count


def as_it_is(scene: Scene) -> Scene:
    """The scene for a plan that a thread makes: rows and summaries may come meanwhile."""
    sizes: dict[Place, int | None] = {}

    def size_of(node: Node) -> int | None:
        if node.place not in sizes:
            sizes[node.place] = scene.size_of(node)
        return sizes[node.place]

    groups = scene.groups.copy()
    return replace(scene, history=groups.history, builder=scene.builder.copy(), groups=groups, size_of=size_of)


class Scale:
    """Weighs the drafts of one plan."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.newest_user = scene.history.users[-1] if scene.history.users else None
        self._saved: tuple[Mapping[int, int], Mapping[int, int]] = ({}, {})
        newest_first = (shown.tokens for shown in reversed(scene.groups.from_row(scene.view.frontier_row)))
        self._tails = list(accumulate(newest_first, initial=0))
        """Tokens of so many groups at the end: a plan for an import sums thousands of them hundreds of times."""
        self._sizes: dict[Place, int] = {}
        self._opening = measure(opening_row(), scene.count)
        standing = self.standing()
        self.now = self._size_of_others(standing, after=False) - self.nodes_size(standing)
        # What is shown has a size, known or not: a fallback is to be made anew, and counts as unknown.
        self.now += sum(shown.tokens for shown in scene.view.shown)
        self.now += scene.view.notes.tokens if scene.view.notes is not None else 0

    def standing(self) -> Draft:
        """The view as it stands."""
        view = self.scene.view
        return Draft(view.nodes, view.frontier, view.newest_user, view.shortened, view.pinned)

    def unshortened(self, draft: Draft) -> Draft:
        """The draft with the rows whole that the user has pinned."""
        rows = self.pinned_rows(draft)
        return replace(draft, shortened={row: keep for row, keep in draft.shortened.items() if row not in rows})

    def pinned_rows(self, draft: Draft) -> set[int]:
        """History rows of the groups that the user has pinned."""
        groups = map(self.scene.history.rendered_group, draft.pinned)
        return {row for group in groups for row in range(group.start, group.end)}

    # --- sizes ------------------------------------------------------------------------------------------------------

    def size(self, draft: Draft) -> int:
        """Tokens of the view, system prompt aside."""
        others = self._size_of_others(draft, after=True)
        return others + self._notes_size(draft, others)

    def _size_of_others(self, draft: Draft, *, after: bool) -> int:
        """The same without the row of notes; `after` False for the view as it stands, before a compaction."""
        row, pins = self.frontier_row(draft), self.pins(draft)
        groups = self.scene.groups
        tokens = self._tails[groups.count_from(row)] + sum(groups.pinned(group).tokens for group in pins)
        pinned = {index for group in pins for index in range(group.start, group.end)}
        savings = self._savings(draft.shortened)
        tokens -= sum(saved for index, saved in savings.items() if index >= row or index in pinned)
        first_keep = self._first_user_keep(draft) if after else None
        if first_keep is not None:
            first = self._first_user_row()
            tokens += savings.get(first, 0) - groups.saving(first, first_keep)
        return tokens + self.nodes_size(draft) + self._opening_size(draft, row, after)

    def pins(self, draft: Draft) -> list[Group]:
        """The groups before the frontier that the draft shows verbatim."""
        return self.scene.groups.pins(self.frontier_row(draft), draft.frontier, draft.newest_user, draft.pinned)

    def shown(self, draft: Draft) -> list[ShownGroup]:
        """All groups that the draft shows verbatim, in order, unshortened."""
        groups = self.scene.groups
        return [*map(groups.pinned, self.pins(draft)), *groups.from_row(self.frontier_row(draft))]

    def _savings(self, shortened: Mapping[int, int]) -> Mapping[int, int]:
        """Tokens that each shortened row saves."""
        if self._saved[0] is not shortened:  # most drafts of a plan shorten the same rows
            saving = self.scene.groups.saving
            self._saved = (shortened, {row: saving(row, keep) for row, keep in shortened.items()})
        return self._saved[1]

    def frontier_row(self, draft: Draft) -> int:
        """History row at which the verbatim part of the draft begins."""
        view, history = self.scene.view, self.scene.history
        if draft.frontier == view.frontier:
            return view.frontier_row
        keep_from = len(history) - self.scene.limits.keep_recent
        return max(view.frontier_row, history.row_after(draft.frontier, keep_from))

    def node_size(self, node: Node) -> int:
        """Tokens of a node's row; an estimate while its text is not known."""
        found = self._sizes.get(node.place)
        if found is None:
            known = self.scene.size_of(node)
            estimate = node.summary_tokens + FRAME_TOKENS
            found = self._sizes[node.place] = estimate if known is None else known
        return found

    def sum_of(self, nodes: Sequence[Node]) -> int:
        """Tokens of the rows of these nodes."""
        return sum(map(self.node_size, nodes))

    def nodes_size(self, draft: Draft) -> int:
        """Tokens of the rows of the draft's nodes."""
        scene = self.scene
        lines = (one_line_size(scene.history, n, scene.limits.role, scene.count) for n in draft.nodes[: draft.lines])
        return sum(lines) + self.sum_of(draft.nodes[draft.lines :])

    def notes_room(self, draft: Draft) -> int:
        """Tokens of the row of notes; where it is to be written, what it may take: at most half of what is freed."""
        return self._notes_size(draft, self._size_of_others(draft, after=True))

    def _notes_size(self, draft: Draft, others: int) -> int:
        view, most = self.scene.view, self.scene.limits.notes_room
        if not (draft.notes and draft.frontier):
            return 0
        if view.notes is not None and view.keeps_notes(draft.nodes, most):
            return view.notes.tokens
        return max(0, min(most, (self.now - others) // 2))

    # --- pins -------------------------------------------------------------------------------------------------------

    @property
    def tenth(self) -> int:
        """Tokens that a long first user message keeps once it is pinned."""
        return max(HARD_FLOOR, self.scene.limits.own_budget // 10)

    def shortened(self, draft: Draft) -> Mapping[int, int]:
        """The shortened rows of the draft; a long first user message, once pinned, is head and tail only."""
        keep = self._first_user_keep(draft)
        if keep is None:
            return draft.shortened
        return {**draft.shortened, self._first_user_row(): keep}

    def _first_user_row(self) -> int:
        history = self.scene.history
        return history.rendered_group(history.users[0]).start

    def _first_user_keep(self, draft: Draft) -> int | None:
        """Tokens that the first user message keeps; None if it is not pinned, or short enough."""
        history = self.scene.history
        if not history.users or history.users[0] in draft.pinned:
            return None
        if self._first_user_row() >= self.frontier_row(draft):
            return None
        row = self._first_user_row()
        if history.count_row(row, self.scene.count) <= self.tenth:
            return None
        return min(draft.shortened.get(row, self.tenth), self.tenth)

    # --- the opening ------------------------------------------------------------------------------------------------

    def _opening_size(self, draft: Draft, frontier_row: int, after: bool) -> int:
        """Tokens of the row that a view opens with if it would open with an assistant row."""
        if not (self.scene.view.compactions or after):
            return 0
        opens = self._opens(draft, frontier_row)
        return 0 if opens is None or opens else self._opening

    def _opens(self, draft: Draft, frontier_row: int) -> bool | None:
        """Whether a user message opens the conversation in the view; None if there is no row of one."""
        if not (draft.nodes and self.scene.limits.role == "user"):
            return next((shown.opens for shown in self.shown(draft) if shown.opens is not None), None)
        bound = min(self.scene.history.rendered_group(draft.nodes[0].end_group - 1).end, frontier_row)
        before = (self.scene.groups.pinned(group) for group in self.pins(draft) if group.start < bound)
        return next((shown.opens for shown in before if shown.opens is not None), None)
