"""Budget and usage → which nodes to show, which rows to shorten, where the verbatim part begins. Pure.

A plan is made from what is known: sizes of summaries that exist, estimates for the rest. Whoever carries it out makes
the missing texts and plans again with their sizes, until nothing is missing; then the plan is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from context_summarize.core.entries import first_user_row, pinned_groups
from context_summarize.core.frames import one_line_size, opening_row
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, expanded
from context_summarize.core.sizes import Sizes
from context_summarize.core.view_state import ViewState
from context_summarize.facts.ledger import ledger_tokens, prose_tokens
from context_summarize.messages.reading import is_hook
from context_summarize.tokens.measure import Count, measure

Reason = Literal["threshold", "manual", "must_fit"]
FRAME_TOKENS = 70
"""Estimate of what the frame adds to a summary whose row has not been built yet."""
HARD_FLOOR = 24
"""Tokens below which no row is shortened further."""
SLACK = 0.9
"""Where rows must be shortened to fit, this share of the budget is aimed at, so that the next row still fits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan has to keep to; tokens are ours, uncorrected."""

    budget: int
    """Tokens for everything but the system prompt."""
    room: int
    """Tokens of the whole request, the base of all shares."""
    keep_recent: int
    threshold: float
    target: float
    share: float
    fan_in: int
    shorten_above: int | None
    """Tool results above this many tokens are shortened; None = never."""
    role: str = "system"
    """Role of a node's row."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next view state is to be."""

    reason: Reason
    nodes: tuple[Node, ...]
    frontier: int
    frontier_row: int
    shortened: dict[int, int]
    newest_user: int | None
    lines: int
    """How many of the oldest nodes are shown as one line only."""
    tokens_before: int
    tokens_after: int
    """Sizes without the system prompt; the second is exact once `missing` is empty."""
    missing: tuple[Node, ...]
    """Nodes to be shown whose text is not known."""
    segments: int
    """Segments and rests folded by this plan."""
    merged: int
    level: int
    """How far it had to go: 1 fold, 2 rest, 3 keep_recent halved, 4 rows shortened, 5 one-line nodes."""
    fits: bool
    reached: bool
    """True when the size that the boundary aims at is reached."""

    @property
    def freed(self) -> int:
        """Tokens that it saves."""
        return self.tokens_before - self.tokens_after


@dataclass(slots=True)
class _Draft:
    """The plan under construction."""

    nodes: list[Node]
    frontier: int
    newest_user: int | None
    shortened: dict[int, int] = field(default_factory=dict)
    segments: int = 0
    lines: int = 0
    level: int = 1
    after: bool = True
    """False for the view as it stands, before the boundary."""
    ready_only: bool = False
    """True: only what is known is folded and merged."""


class Planner:
    """Plans from one view state; reads the history and changes nothing."""

    def __init__(
        self,
        history: History,
        builder: NodeBuilder,
        state: ViewState,
        limits: Limits,
        known: Callable[[Node], int | None],
        count: Count,
        *,
        factory: bool = False,
        sizes: Sizes | None = None,
    ) -> None:
        self._history = history
        self._builder = builder
        self._state = state
        self._limits = limits
        self._known = known
        self._count = count
        self._factory = factory
        self._newest_user = history.users[-1] if history.users else None
        self._first = first_user_row(history)
        self._tenth = max(HARD_FLOOR, limits.room // 10)
        self._sizes = sizes if sizes is not None else Sizes(history, count)
        self._groups = history.groups[history.group_position(state.frontier_row) :]
        self._open = history.open_groups()

    # --- entry points -----------------------------------------------------------------------------------------------

    def boundary(
        self, reason: Reason, focus: str | None = None, *, ahead: bool = False, ready_only: bool = False
    ) -> Plan:
        """The plan of a boundary now: elide, fold, merge, elide harder; then whatever it takes to fit.

        Args:
            ahead: fold as much as a boundary at the very threshold would: more than now while usage is below it,
                less once it is above.
            ready_only: fold and merge only as far as texts are known, whatever the goal.
        """
        limits = self._limits
        draft = self._draft()
        draft.ready_only = ready_only
        goal = self._goal(reason, ahead)
        self._shorten_results(draft, limits.keep_recent, limits.shorten_above)
        self._fold(draft, limits.keep_recent, goal)
        if reason == "manual":
            self._rest(draft, limits.keep_recent, focus)
        if limits.shorten_above is not None and self._size(draft) > limits.threshold * limits.room - (
            limits.room - limits.budget
        ):
            self._shorten_results(draft, limits.keep_recent, max(256, limits.shorten_above // 4))
        if self._size(draft) > limits.budget and not ready_only:
            self._must_fit(draft)
        return self._finish(draft, reason, goal)

    def needed(self) -> Plan:
        """What a boundary at the threshold will fold, as far as it is closed; rows still too new to be folded count."""
        draft = self._draft()
        goal = self._goal("threshold", ahead=True)
        self._shorten_results(draft, self._limits.keep_recent, self._limits.shorten_above)
        self._fold(draft, 0, goal)
        return self._finish(draft, "threshold", goal)

    def _goal(self, reason: Reason, ahead: bool) -> int:
        """Tokens that a boundary folds down to, as far as it may."""
        limits = self._limits
        if reason == "manual":
            return 0
        system = limits.room - limits.budget
        goal = int(limits.target * limits.room) - system
        return goal + self._size_now() - (int(limits.threshold * limits.room) - system) if ahead else goal

    def _draft(self) -> _Draft:
        state = self._state
        nodes = [shown.node for shown in state.nodes]
        return _Draft(nodes, state.frontier, self._newest_user, dict(state.shortened))

    def _size_now(self) -> int:
        """The size of the view as it stands: the newest user message of the last boundary is pinned."""
        draft = self._draft()
        draft.newest_user, draft.after = self._state.newest_user, False
        # What is shown has a size, known or not: a digest is to be made anew, and counts as unknown.
        return self._size(draft) - self._nodes_size(draft) + sum(shown.tokens for shown in self._state.nodes)

    def _finish(self, draft: _Draft, reason: Reason, goal: int) -> Plan:
        before, after = self._size_now(), self._size(draft)
        frontier_row = self._frontier_row(draft)
        old = {shown.node.place for shown in self._state.nodes}
        return Plan(
            reason=reason,
            nodes=tuple(draft.nodes),
            frontier=draft.frontier,
            frontier_row=frontier_row,
            shortened=self._shortened(draft, frontier_row),
            newest_user=self._newest_user,
            lines=draft.lines,
            tokens_before=before,
            tokens_after=after,
            missing=tuple(node for node in draft.nodes if self._known(node) is None),
            segments=draft.segments,
            merged=sum(1 for node in draft.nodes if node.children and node.place not in old),
            level=draft.level,
            fits=after <= self._limits.budget,
            reached=after <= goal,
        )

    # --- sizes ------------------------------------------------------------------------------------------------------

    def _node_size(self, node: Node) -> int:
        known = self._known(node)
        if known is not None:
            return known
        return prose_tokens(node.summary_tokens) + ledger_tokens(node.summary_tokens, node.level) + FRAME_TOKENS

    def _shortened(self, draft: _Draft, frontier_row: int) -> dict[int, int]:
        """The shortened rows of the draft; a long first user message, once pinned, is head and tail only."""
        first = self._first
        if first is None or first >= frontier_row or not draft.after:
            return draft.shortened
        self._history.count_rows(first, first + 1, self._count)
        if self._history.tokens[first] <= self._tenth:
            return draft.shortened
        kept = draft.shortened.get(first, self._tenth)
        return {**draft.shortened, first: min(kept, self._tenth)}

    def _group_size(self, group: Group, shortened: Mapping[int, int]) -> int:
        return self._sizes.group(group, shortened, factory=self._factory)

    def _pins(self, draft: _Draft, frontier_row: int) -> list[Group]:
        return pinned_groups(self._history, frontier_row, draft.frontier, draft.newest_user, factory=self._factory)

    def _frontier_row(self, draft: _Draft) -> int:
        if draft.frontier == self._state.frontier:
            return self._state.frontier_row
        keep_from = len(self._history) - self._limits.keep_recent
        return max(self._state.frontier_row, self._history.row_after(draft.frontier, keep_from))

    def _size(self, draft: _Draft) -> int:
        frontier_row = self._frontier_row(draft)
        shortened = self._shortened(draft, frontier_row)
        pins = self._pins(draft, frontier_row)
        tail = [group for group in (*self._groups, *self._open) if group.start >= frontier_row]
        shown = sum(self._group_size(group, shortened) for group in (*pins, *tail))
        return shown + self._nodes_size(draft) + self._opening_size(draft, pins, tail)

    def _nodes_size(self, draft: _Draft) -> int:
        lines = sum(
            one_line_size(self._history, node, self._limits.role, self._count) for node in draft.nodes[: draft.lines]
        )
        return lines + sum(self._node_size(node) for node in draft.nodes[draft.lines :])

    def _opening_size(self, draft: _Draft, pins: Sequence[Group], tail: Sequence[Group]) -> int:
        """Tokens of the row that a view opens with when it would open with an assistant row."""
        if not (self._state.boundaries or draft.after):
            return 0
        before = pins
        if draft.nodes and self._limits.role == "user":
            end = self._history.rendered_group(draft.nodes[0].end_group - 1).end
            before, tail = [group for group in pins if group.start < end], ()
        for group in (*before, *tail):
            opens = self._sizes.opens(group, factory=self._factory)
            if opens is not None:
                return 0 if opens else measure(opening_row(), self._count)
        return 0

    # --- folding ----------------------------------------------------------------------------------------------------

    def _base(self, draft: _Draft) -> tuple[list[Node], int, int]:
        """(nodes without the rest over rows at the end, where regular segments go on, how far that rest reaches)."""
        if draft.nodes and draft.nodes[-1].is_rest and not draft.nodes[-1].children:
            rest = draft.nodes[-1]
            return draft.nodes[:-1], rest.first_group, rest.end_group
        return draft.nodes, draft.frontier, draft.frontier

    def _fold(self, draft: _Draft, keep: int, goal: int) -> None:
        """Fold the oldest segments until the size is at the goal, or none is left that may be folded."""
        base, regular, reach = self._base(draft)
        limit = self._history.summarisable(keep)
        nodes = list(base)
        count = 0
        if self._size(draft) <= goal:
            self._merge(draft)
            return
        for segment in self._history.segments:
            if segment.first_group < regular:
                continue
            if segment.end_group > limit:
                break
            leaf = self._builder.leaf(segment)
            if draft.ready_only and self._known(leaf) is None:
                break
            nodes = [*nodes, leaf]
            count += 1
            if segment.end_group < reach:
                continue
            draft.nodes, draft.frontier = list(nodes), segment.end_group
            draft.segments += count
            count = 0
            self._merge(draft)
            if self._size(draft) <= goal:
                return
            nodes = list(draft.nodes)
        self._merge(draft)

    def _rest(self, draft: _Draft, keep: int, focus: str | None = None) -> None:
        """Fold what lies between the last closed segment and the newest rows as a rest node."""
        base, regular, reach = self._base(draft)
        limit = self._history.summarisable(keep)
        if limit <= reach:
            return
        node = self._builder.rest(regular, limit, focus)
        if node is not None:
            draft.nodes, draft.frontier = [*base, node], limit
            draft.segments += 1
            draft.level = max(draft.level, 2)

    # --- merging ----------------------------------------------------------------------------------------------------

    def _merge(self, draft: _Draft) -> None:
        """Merge oldest complete runs of the lowest level until a tenth of the share is free; then rest nodes."""
        share = self._limits.share * self._limits.room
        if sum(map(self._node_size, draft.nodes)) <= share:
            return
        while sum(map(self._node_size, draft.nodes)) > 0.9 * share:
            merged = self._complete_run(draft.nodes) or self._incomplete_run(draft.nodes)
            if merged is None or (draft.ready_only and any(self._known(node) is None for node in merged)):
                return  # the share yields, never the budget
            draft.nodes = merged

    def _complete_run(self, nodes: list[Node]) -> list[Node] | None:
        """The nodes with their oldest complete run of the lowest level merged; None when there is none.

        A run inside a rest node counts, and the rest goes, when the run covers it wholly.
        """
        fan_in = self._limits.fan_in
        regular: list[Node] = []
        for node in nodes:
            regular += expanded(node)
        for level in sorted({node.level for node in regular if not node.is_rest}):
            row = [node for node in regular if node.level == level and not node.is_rest]
            for at, node in enumerate(row):
                run = row[at : at + fan_in]
                aligned = node.index % fan_in == 0 and [n.index for n in run] == list(
                    range(node.index, node.index + fan_in)
                )
                if not aligned or any(_overhangs(other, run) for other in nodes if other.is_rest):
                    continue
                made = self._builder.merge(run, node.index // fan_in)
                return _replaced(nodes, made)
        return None

    def _incomplete_run(self, nodes: list[Node]) -> list[Node] | None:
        """The nodes with a run of two or more neighbours of one level and one parent as a rest node.

        The oldest run of the lowest level: what is joined again and again loses something every time. A rest node over
        nodes of that parent is part of the run: the rest grows, made anew from what it stands for.
        """
        fan_in = self._limits.fan_in
        lowest: list[Node] = []
        at = 0
        while at < len(nodes):
            run, end = expanded(nodes[at]), at + 1
            while end < len(nodes) and _are_of_one_parent(run, more := expanded(nodes[end]), fan_in):
                run, end = [*run, *more], end + 1
            if end - at >= 2 and (not lowest or run[0].level < lowest[0].level):
                lowest = run
            at = end
        return _replaced(nodes, self._builder.merge(lowest, -1)) if lowest else None

    # --- shortening -------------------------------------------------------------------------------------------------

    def _shorten_results(self, draft: _Draft, keep: int, longest: int | None) -> None:
        """Shorten tool results of the verbatim part that are older than the newest `keep` rows."""
        if longest is None:
            return
        bound = len(self._history) - keep
        frontier_row = self._state.frontier_row
        for group in (*self._groups, *self._open):
            for index, size in self._sizes.rows(group, draft.shortened, factory=self._factory):
                if index is None or not frontier_row <= index < bound or size <= longest:
                    continue
                row = self._history.rows[index]
                if row.result_ids and not row.pinned:
                    draft.shortened[index] = max(HARD_FLOOR, longest // 4)

    def _must_fit(self, draft: _Draft) -> None:
        """The ladder: fold all, a rest, halve keep_recent, shorten any row, one-line nodes."""
        limits = self._limits
        keep = limits.keep_recent
        while True:
            self._fold(draft, keep, limits.budget)
            if self._size(draft) <= limits.budget:
                return
            self._rest(draft, keep)
            self._merge(draft)
            if self._size(draft) <= limits.budget:
                return
            if keep == 0:
                break
            keep //= 2
            draft.level = 3
            self._shorten_results(draft, keep, limits.shorten_above)
        self._shorten_rows(draft)
        while self._size(draft) > limits.budget and draft.lines < len(draft.nodes):
            draft.level = 5
            draft.lines += 1

    def _shorten_rows(self, draft: _Draft) -> None:
        """Shorten rows, longest first, until the whole is within the budget: all above one level are cut to it."""
        draft.level = 4
        frontier_row = self._frontier_row(draft)
        groups = [group for group in (*self._groups, *self._open) if group.start >= frontier_row]
        groups += self._pins(draft, frontier_row)
        for aim in (SLACK, 0.8, 0.6, 0.4, 0.2, 0.0):
            sizes = self._shortenable(draft, groups, frontier_row)
            fixed = self._size(draft) - sum(sizes.values())
            level = max(HARD_FLOOR, _water_level(list(sizes.values()), int(aim * self._limits.budget) - fixed))
            draft.shortened.update((index, level) for index, size in sizes.items() if size > level)
            if self._size(draft) <= self._limits.budget:
                return

    def _shortenable(self, draft: _Draft, groups: Sequence[Group], frontier_row: int) -> dict[int, int]:
        """Sizes of all rows of the view but the host's system rows: half an instruction is worse than none."""
        shortened = self._shortened(draft, frontier_row)
        rows = (row for group in groups for row in self._sizes.rows(group, shortened, factory=self._factory))
        return {i: size for i, size in rows if i is not None and not self._is_host_system(i)}

    def _is_host_system(self, index: int) -> bool:
        row = self._history.rows[index]
        return row.role in ("system", "developer") and not is_hook(row.raw) and not row.ephemeral


def _are_of_one_parent(run: Sequence[Node], more: Sequence[Node], fan_in: int) -> bool:
    """Whether these regular nodes and those are of one level, and would be merged into one node."""
    nodes = (*run, *more)
    parents = {(node.level, node.index // fan_in) for node in nodes}
    return len(parents) == 1 and not any(node.is_rest for node in nodes)


def _overhangs(rest: Node, run: Sequence[Node]) -> bool:
    """True when a rest node overlaps the run without lying inside it."""
    first, end = run[0].first_group, run[-1].end_group
    return (
        rest.first_group < end and rest.end_group > first and not (rest.first_group >= first and rest.end_group <= end)
    )


def _replaced(nodes: list[Node], made: Node) -> list[Node]:
    """The nodes with those that `made` covers replaced by it."""
    before = [node for node in nodes if node.end_group <= made.first_group]
    after = [node for node in nodes if node.first_group >= made.end_group]
    return [*before, made, *after]


def _water_level(sizes: Sequence[int], room: int) -> int:
    """The largest level at which the sum of min(size, level) is within the room."""
    low, high = 0, max(sizes, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
