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
from context_summarize.core.limits import Limits
from context_summarize.core.nodes import Node
from context_summarize.core.shortening import shorten_results
from context_summarize.core.summarising import summarised, with_rest
from context_summarize.core.view_state import ViewState

Reason = Literal["threshold", "manual", "must_fit", "cold_cache"]
"""Why a compaction is made; one for a cold cache is made of what is known already, or not at all."""
Prefetched = Literal["room", "no room"] | None
"""Whether the texts of a compaction are being made already, and whether there is room to go on without them."""

_MOST_OF_IT = 0.75
"""Share of what a compaction would free that makes it worth making with what is ready, if it could wait."""
_HARDER = 256
"""The second shortening takes results above a quarter of the first bound, but none of this many tokens or fewer."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What kind of compaction is planned."""

    reason: Reason = "threshold"
    focus: str | None = None
    """What the newest summarised part should keep above all; with reason `manual` only."""
    prefetched: Prefetched = None


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
    """The plan of a compaction now: shorten, summarise, merge, shorten harder; then whatever it takes to fit.

    If texts are being made already, the plan takes no waiting if one that does not is good enough.
    """
    scale, limits = Scale(scene), scene.limits
    start = _start(scale)
    if ask.reason == "cold_cache":
        return _known_only(scale, start, ask.reason)
    goal = 0 if ask.reason == "manual" else limits.target_room
    easier = max(goal, _threshold_goal(scale)) if ask.prefetched == "room" else goal
    first, full = summarised(scale, start, limits.keep_recent, [easier, goal])
    if ask.reason == "manual":
        full = with_rest(scale, full, limits.keep_recent, ask.focus)
    plan = _finished(scale, full, ask.reason, goal)
    if not plan.missing or ask.prefetched is None:
        return plan
    if ask.prefetched == "room":
        plan = _finished(scale, first, ask.reason, easier)
    enough = _MOST_OF_IT * plan.freed if ask.prefetched == "room" else 0
    ready = _known_only(scale, start, ask.reason)
    return ready if not ready.missing and ready.freed >= enough and _relieves(ready, limits) else plan


def _known_only(scale: Scale, start: Draft, reason: Reason) -> Plan:
    """The plan of a compaction of what is ready, as far as it goes."""
    limits = scale.scene.limits
    goal = limits.target_room
    [known] = summarised(scale, start, limits.keep_recent, [goal], known_only=True)
    return _finished(scale, known, reason, goal, known_only=True)


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


def _relieves(plan: Plan, limits: Limits) -> bool:
    """True when a plan frees enough and leaves the view below the threshold."""
    return plan.freed >= limits.min_fold * limits.own_budget and plan.tokens_after < limits.threshold_room


def is_worthwhile(plan: Plan, limits: Limits, *, may_fire: bool) -> bool:
    """A compaction throws the provider's prompt cache away, so it must free enough, or be needed to fit.

    Args:
        may_fire: the throttle allows a compaction of a view that cannot fit.
    """
    if plan.freed <= 0:
        return False
    if plan.reason == "manual" or (plan.reason == "must_fit" and plan.fits):
        return True
    return may_fire if plan.reason == "must_fit" else plan.freed >= limits.min_fold * limits.own_budget
