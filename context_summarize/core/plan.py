"""Plans a compaction: the next cut, its size, and the texts that it lacks. Pure.

A plan uses the sizes of known texts, and estimates for the others. The caller gets the missing texts and plans again.
Once no text is missing, the plan is exact, but for the thread, whose room counts as filled.
"""

from __future__ import annotations

from dataclasses import replace

from context_summarize.core.cut import Cut
from context_summarize.core.draft import Draft, Plan, PlanInput, Reason
from context_summarize.core.limits import Limits
from context_summarize.core.nodes import Length, derive_fan, derive_summary_tokens
from context_summarize.core.parts import Ends, derive_segment_tokens, is_too_long

_MOST_ROOM = 1.25
"""Summaries may take this many times their share before the oldest merge whatever their level."""
_MUCH_SMALLER = 1.5
"""If the summaries' room was this many times that of a later base, the tree grows by the later one from then on."""


def ends_for(cut: Cut, limits: Limits, segment_tokens: int | None) -> Ends:
    """Returns the ends of parts for a base. The first base fixes their length, until it does not suit a later one.

    Args:
        segment_tokens: the length that the settings give; None = it follows from the base.
    """
    lengths, base = cut.ends.lengths, limits.base
    room = max(0, int(limits.share * base) - limits.notes_room)
    most_room = int(_MOST_ROOM * room)
    is_long = segment_tokens is None and bool(lengths) and is_too_long(lengths[-1].segment_tokens, base)
    if lengths and not is_long and lengths[-1].room <= _MUCH_SMALLER * most_room:
        return cut.ends
    tokens = lengths[-1].segment_tokens if lengths and not is_long else segment_tokens or derive_segment_tokens(base)
    newest = Length(cut.groups, tokens, derive_fan(room, derive_summary_tokens(tokens)), most_room)
    older = tuple(length for length in lengths if length.from_group < cut.groups)
    return replace(cut.ends, lengths=(*older, newest))


def plan(given: PlanInput, reason: Reason, focus: str | None = None, *, known_only: bool = False) -> Plan:
    """Returns the plan of a compaction now: it shortens, summarises and merges, then takes further steps to fit.

    Args:
        focus: the subject that the newest summarised part should keep above all; with reason `manual` only.
        known_only: True to summarise only as far as texts are known.
    """
    draft, limits = Draft(given, known_only=known_only), given.limits
    goal = 0 if reason == "manual" else limits.target_room
    draft.shorten_results()
    draft.summarise(limits.keep_recent, goal)
    if reason == "manual":
        draft.end_early(limits.keep_recent, focus)
    if draft.size() > limits.most_left:
        draft.shorten_newest_results()
    if not known_only:
        _make_fit(draft, limits)
    return draft.plan(reason)


def next_plan(given: PlanInput) -> Plan:
    """Returns the plan of the next compaction at the threshold, as far as parts are closed."""
    draft, limits = Draft(given), given.limits
    # The next compaction will free the tokens between threshold and target; this plan frees as many.
    goal = given.shown.tokens - (limits.threshold_room - limits.target_room)
    draft.shorten_results()
    draft.summarise(0, goal)
    return draft.plan("threshold")


def _make_fit(draft: Draft, limits: Limits) -> None:
    """Takes one step after another until the view fits: leaves out the thread, then goes from level to level."""
    if not draft.fits():
        draft.has_thread = False
    keep = limits.keep_recent
    while not draft.fits():
        draft.summarise(keep, limits.view_room)
        whole = draft.cut
        if not draft.fits():
            draft.end_early(keep)
        if keep == 0 or draft.fits():
            break
        keep //= 2
        draft.cut = replace(whole, keep_recent=keep)  # without the part that ends early; the next one is longer
        draft.level = 3
    if not draft.fits():
        draft.level = 4
        draft.shorten_longest()
    if not draft.fits() and draft.cut.groups:
        draft.level = 5
        draft.cut = replace(draft.cut, is_bare=True)
