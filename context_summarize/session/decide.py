"""The one decision about a request: go on, compact, wait for missing summaries, or fall back. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from context_summarize.core.draft import Plan, Reason
from context_summarize.core.limits import GROWTH, Limits

_MOST_OF_IT = 0.75
"""If the request could also go on, a compaction with only the ready summaries must free this share of a whole one."""

Step = Literal["go on", "compact", "wait", "fall back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a decision depends on, apart from its plans. Sizes are of the view, in our own tokens."""

    used: int
    room: int
    """Tokens that the view may take."""
    compact_from: float
    """Tokens at which a compaction is due; infinite if none is made automatically."""
    defer_below: float = 0.0
    """Tokens. A smaller request may go on while the texts of its compaction are being made."""
    is_ahead: bool = False
    """True if texts are made ahead, so that some may be ready."""
    has_waited: bool = False
    """True if the request has waited and texts are still missing. More waiting is useless."""
    may_compact_again: bool = True
    """True if a view that cannot fit may be compacted once more."""

    @property
    def reason(self) -> Reason | None:
        """The reason why a compaction is due; None if none is."""
        if self.used > self.room:
            return "must_fit"
        return "threshold" if self.used >= self.compact_from else None


def decide(facts: Facts, limits: Limits, whole: Plan, ready: Plan) -> tuple[Step, Plan]:
    """Returns the next step of a request whose compaction is due, and the plan that it is about.

    A request goes on unchanged if no compaction is worth making. If all texts of a compaction are known, it is made. If
    some are missing:

    1. Texts that were made ahead may be ready. A compaction with only these is made if it frees enough, compared with
       what stays. If the request could also go on, it must free three quarters of what the whole one would free.
    2. Below `defer_below` the request goes on.
    3. Else it waits for the missing texts, once.
    4. Then it goes on if it fits. If it does not fit, fallbacks replace the missing texts.

    Args:
        whole: the plan of the whole compaction.
        ready: the plan of as much of it as known texts allow.
    """
    may_go_on = facts.used < facts.defer_below
    takes_ready = facts.is_ahead and whole.missing and _is_enough(ready, whole, limits, may_go_on=may_go_on)
    plan = ready if takes_ready else whole
    if not is_worthwhile(plan, limits, may_compact_again=facts.may_compact_again):
        return "go on", plan
    if not plan.missing:
        return "compact", plan
    if may_go_on:
        return "go on", plan
    if not facts.has_waited:
        return "wait", plan
    return ("go on" if facts.used <= facts.room else "fall back"), plan


def _is_enough(ready: Plan, whole: Plan, limits: Limits, *, may_go_on: bool) -> bool:
    least = _MOST_OF_IT * whole.freed if may_go_on else 0
    return not ready.missing and ready.freed >= least and _frees_enough(ready, limits)


def _frees_enough(plan: Plan, limits: Limits) -> bool:
    """Returns True if a plan frees enough. It empties the provider's cache, so the rest costs the full price once."""
    least = GROWTH * limits.threshold * plan.tokens_after
    return plan.fits and plan.freed > least and plan.tokens_before >= limits.due_after(plan.tokens_after)


def is_worthwhile(plan: Plan, limits: Limits, *, may_compact_again: bool) -> bool:
    """Returns True if a plan frees enough, or is needed to fit. `may_compact_again`: see `Facts`."""
    if plan.freed <= 0:
        return False
    if plan.reason == "manual" or (plan.reason == "must_fit" and plan.fits):
        return True
    if plan.reason == "must_fit":
        return may_compact_again
    return _frees_enough(plan, limits)
