"""Plans a compaction: which nodes to show, which rows to shorten, where the verbatim part begins. Pure.

A plan uses the sizes of known summaries, and estimates for the others. The caller gets the missing texts and plans
again with their sizes. Once no text is missing, the plan is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from context_summarize.core.draft import Draft, PlanInput
from context_summarize.core.limits import Limits
from context_summarize.core.nodes import Node, View, with_children
from context_summarize.core.render import verbatim_groups

Reason = Literal["threshold", "manual", "must_fit", "cold_cache"]
"""Why a compaction is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compaction before it is made: the next view and its sizes."""

    reason: Reason
    view: View
    """The next view, without the rows of its nodes and the row of notes."""
    notes_room: int
    """Tokens that the row of notes may take; 0 if the view has no room for it."""
    tokens_before: int
    tokens_after: int
    """Sizes without the system prompt; the second is exact once `missing` is empty."""
    missing: tuple[Node, ...]
    """The nodes of the view whose text is not known."""
    segments: int
    """Segments that are summarised."""
    merged: int
    level: int
    """The last step that it takes: 1 summarise, 2 the remainder too, 3 halve `keep_recent`, 4 shorten any row, 5 one
    line for all summaries."""
    fits: bool
    reached: bool
    """True if the view is as small as the compaction aims at."""

    @property
    def freed(self) -> int:
        """Tokens that the compaction saves."""
        return self.tokens_before - self.tokens_after


def plan(given: PlanInput, reason: Reason, focus: str | None = None, *, known_only: bool = False) -> Plan:
    """Returns the plan of a compaction now: it shortens, summarises and merges, then takes further steps to fit.

    Args:
        focus: the subject that the newest summarised part should keep above all; with reason `manual` only.
        known_only: True to summarise only as far as texts are known.
    """
    draft, limits = Draft(given, known_only=known_only), given.limits
    goal = 0 if reason == "manual" else limits.target_room
    draft.shorten_results(limits.keep_recent, limits.shorten_above)
    draft.summarise(limits.keep_recent, goal)
    if reason == "manual":
        draft.summarise_remainder(limits.keep_recent, focus)
    if draft.size() > limits.most_left:
        draft.shorten_results(given.log.rows_of_newest_group, limits.shorten_newest_above, limits.most_left)
    if not known_only:
        _make_fit(draft, limits)
    return _finished(given, draft, reason, goal)


def next_plan(given: PlanInput) -> Plan:
    """Returns the plan of the next compaction at the threshold, as far as segments are closed."""
    draft, limits = Draft(given), given.limits
    # The next compaction will free the tokens between threshold and target; this plan frees as many.
    goal = draft.size_before - (limits.threshold_room - limits.target_room)
    draft.shorten_results(limits.keep_recent, limits.shorten_above)
    draft.summarise(0, goal)
    return _finished(given, draft, "threshold", goal)


def _make_fit(draft: Draft, limits: Limits) -> None:
    """Takes one step after another until the view fits: leaves out the notes, then goes from level to level."""
    if not draft.fits():
        draft.has_notes = False
    keep = limits.keep_recent
    while not draft.fits():
        draft.summarise(keep, limits.view_room)
        whole = draft.view
        if not draft.fits():
            draft.summarise_remainder(keep)
            draft.merge()
        if keep == 0 or draft.fits():
            break
        keep //= 2
        draft.view = whole  # drops the remainder; the next one is longer
        draft.level = 3
    if not draft.fits():
        draft.level = 4
        draft.shorten_longest()
    if not draft.fits() and draft.view.nodes:
        draft.level = 5
        draft.view = replace(draft.view, is_bare=True)


def _finished(given: PlanInput, draft: Draft, reason: Reason, goal: int) -> Plan:
    view, after = draft.view, draft.size()
    pinned = {row for group in verbatim_groups(given.log, view) for row in range(group.start, group.end)}
    old = {node.place for node in with_children(given.view.nodes)}
    still_shown = {row: keep for row, keep in view.shortened.items() if row >= view.frontier_row or row in pinned}
    return Plan(
        reason=reason,
        view=replace(view, shortened=still_shown, pinned=tuple(at for at in view.pinned if at < view.frontier)),
        notes_room=draft.notes_room(),
        tokens_before=draft.size_before,
        tokens_after=after,
        missing=draft.missing(),
        segments=sum(not node.children and node.place not in old for node in with_children(view.nodes)),
        merged=sum(bool(node.children) and node.place not in old for node in view.nodes),
        level=draft.level,
        fits=after <= given.limits.view_room,
        reached=after <= goal,
    )
