"""Budget and usage → which nodes to show, which rows to shorten, where the verbatim part begins. Pure.

A plan is made from what is known: sizes of summaries that exist, estimates for the rest. Whoever carries it out gets
the missing texts and plans again with their sizes, until nothing is missing; then the plan is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from context_summarize.core.draft import Draft, Scale, Scene
from context_summarize.core.fitting import fitted
from context_summarize.core.nodes import Node
from context_summarize.core.shortening import shorten_results
from context_summarize.core.summarising import summarised, with_rest
from context_summarize.core.view_state import ViewState

Reason = Literal["threshold", "manual", "must_fit", "cold_cache"]
"""Why a compaction is made."""

_HARDER = 256
"""The second shortening takes results above a quarter of the first bound, but none of this many tokens or fewer."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What kind of compaction is planned."""

    reason: Reason = "threshold"
    focus: str | None = None
    """What the newest summarised part should keep above all; with reason `manual` only."""
    known_only: bool = False
    """Only of texts that are known, as far as they go."""
    easy: bool = False
    """Only as much as a compaction at the very threshold would summarise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a compaction does: the next view, and what it frees."""

    reason: Reason
    view: ViewState
    """The next view: its nodes without their rows, and without the row of notes."""
    notes_room: int
    """Tokens that the row of notes may take; 0 where it had to go."""
    tokens_before: int
    tokens_after: int
    """Sizes without the system prompt; the second is exact once `missing` is empty."""
    missing: tuple[Node, ...]
    """Nodes to be shown whose text is not known."""
    segments: int
    """Segments and rests that are summarised."""
    merged: int
    level: int
    """Reduction level, how far it had to go: 1 summarise, 2 the remainder too, 3 halve `keep_recent`, 4 shorten any
    row, 5 one line for a summary."""
    fits: bool
    reached: bool
    """True when the size that the compaction aims at is reached."""

    @property
    def freed(self) -> int:
        """Tokens that it saves."""
        return self.tokens_before - self.tokens_after


def make_plan(scene: Scene, ask: Ask) -> Plan:
    """The plan of a compaction now: shorten, summarise, merge, shorten harder; then whatever it takes to fit."""
    scale, limits = Scale(scene), scene.limits
    goal = 0 if ask.reason == "manual" else limits.target_room
    if ask.easy:
        goal = max(goal, _threshold_goal(scale))
    [draft] = summarised(scale, _start(scale), limits.keep_recent, [goal], known_only=ask.known_only)
    if ask.reason == "manual":
        draft = with_rest(scale, draft, limits.keep_recent, ask.focus)
    return _finished(scale, draft, ask.reason, goal, known_only=ask.known_only)


def next_compaction(scene: Scene) -> Plan:
    """What a compaction at the threshold will summarise, as far as it is closed; rows still too new for it count."""
    scale = Scale(scene)
    goal = _threshold_goal(scale)
    [draft] = summarised(scale, _start(scale), 0, [goal])
    return _plan(scale, draft, "threshold", goal)


def _start(scale: Scale) -> Draft:
    """The view as it stands, with the newest user message of now, and long results shortened."""
    limits = scale.scene.limits
    draft = replace(scale.standing(), newest_user=scale.newest_user, pinned=scale.scene.pins)
    draft = scale.unshortened(draft)
    return shorten_results(scale, draft, limits.keep_recent, limits.shorten_above)


def _threshold_goal(scale: Scale) -> int:
    """Tokens left by a compaction that summarises as much as one at the very threshold would.

    That is more than now while usage is below the threshold, and less once it is above.
    """
    limits = scale.scene.limits
    return limits.target_room + scale.now - limits.threshold_room


def _finished(scale: Scale, draft: Draft, reason: Reason, goal: int, *, known_only: bool = False) -> Plan:
    """The plan of a draft, shortened harder if it is above the threshold, and made to fit if it does not."""
    limits = scale.scene.limits
    if limits.shorten_above is not None and scale.size(draft) > limits.threshold_room:
        draft = shorten_results(scale, draft, limits.keep_recent, max(_HARDER, limits.shorten_above // 4))
    if scale.size(draft) > limits.view_room and not known_only:
        draft = replace(draft, notes=False)
    if scale.size(draft) > limits.view_room and not known_only:
        draft = fitted(scale, draft)
    return _plan(scale, draft, reason, goal)


def _plan(scale: Scale, draft: Draft, reason: Reason, goal: int) -> Plan:
    scene = scale.scene
    after, row = scale.size(draft), scale.frontier_row(draft)
    old = {node.place for node in scene.view.nodes}
    view = ViewState(
        nodes=draft.nodes,
        lines=draft.lines,
        frontier=draft.frontier,
        frontier_row=row,
        shortened=_still_shown(scale, draft, row),
        newest_user=draft.newest_user,
        pinned=tuple(ordinal for ordinal in draft.pinned if ordinal < draft.frontier),
        rows_at_compaction=len(scene.history),
        compactions=scene.view.compactions + 1,
    )
    return Plan(
        reason=reason,
        view=view,
        notes_room=scale.notes_room(draft),
        tokens_before=scale.now,
        tokens_after=after,
        missing=tuple(node for node in draft.nodes if scene.size_of(node) is None),
        segments=draft.segments,
        merged=sum(1 for node in draft.nodes if node.children and node.place not in old),
        level=draft.level,
        fits=after <= scene.limits.view_room,
        reached=after <= goal,
    )


def _still_shown(scale: Scale, draft: Draft, frontier_row: int) -> Mapping[int, int]:
    """The shortened rows that the view still shows."""
    pinned = {row for group in scale.pins(draft) for row in range(group.start, group.end)}
    return {row: keep for row, keep in scale.shortened(draft).items() if row >= frontier_row or row in pinned}
