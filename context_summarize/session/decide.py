"""The one decision about a request: go on, compact, wait for missing summaries, or fall back. Pure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from context_summarize.core.draft import PlanInput
from context_summarize.core.limits import GROWTH, Limits
from context_summarize.core.plan import Plan, Reason
from context_summarize.core.plan import plan as plan_of
from context_summarize.core.render import Rendering
from context_summarize.session.conversation import Conversation
from context_summarize.session.request_limits import RequestLimits

_MOST_OF_IT = 0.75
"""If the request could also go on, a compaction with only the ready summaries must free this share of a whole one."""
_COLD_SHARE = 0.25
"""A compaction when the provider's cache is empty must free this share of the view."""

Step = Literal["go on", "compact", "wait", "fall back"]
Decision = tuple[Step, Plan | None]
"""The next step, and its plan; None where nothing was planned."""


class PlanFor(Protocol):
    """Plans a compaction from the texts that are known now."""

    def __call__(self, reason: Reason, focus: str | None = None, *, known_only: bool = False) -> Plan:
        """Returns the plan; the arguments are those of `plan`."""
        ...


@dataclass(frozen=True, slots=True)
class Situation:
    """The conversation as a request sees it; sizes are tokens of the request, as the provider counts."""

    chat: Conversation
    limits: RequestLimits
    """The limits, after room is taken off for the retained reminders."""
    rendering: Rendering
    used: int
    """The size of the request as it would be sent now."""
    due: int
    """The size of the request at which the next compaction is due."""
    may_prefetch: bool
    """True if the summaries of that compaction may be made before it is due."""
    is_near: bool
    """True if a compaction may be due, or its summaries may be made ahead."""


@dataclass(slots=True)
class Attempts:
    """The attempts of a request so far."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the host cancels: then the request waits no more."""
    waited: float = 0.0
    """Seconds."""
    wait_is_over: bool = False
    """See `Facts.wait_is_over`."""
    is_late: bool = False
    """True if the request goes on without texts that it has waited for."""
    compactions: int = 0
    """How many the request has made."""
    saved: int = 0
    """Tokens that the last compaction has saved, as the provider counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a decision depends on, apart from its plans. Tokens are of the whole request, as the provider counts."""

    used: int
    budget: int
    compact_from: float
    """Tokens at which a compaction is due; infinite if none is made automatically."""
    defer_below: float = 0.0
    """Tokens. A smaller request may go on while the texts of its compaction are being made."""
    is_ahead: bool = False
    """True if texts are made ahead, so that some may be ready."""
    is_cold: bool = False
    """True if the provider's cache has lost the request, so that an early compaction costs nothing more."""
    is_manual: bool = False
    """True for a request of `compact()`."""
    focus: str | None = None
    is_answered: bool = False
    """True if the request has made its compaction, or the same request was answered before: hosts may repeat one."""
    wait_is_over: bool = False
    """True if the request has waited and texts are still missing: after the deadline, after the host's cancellation,
    or if a wait for one of these texts has timed out before. More waiting is useless."""
    may_compact_again: bool = True
    """True if a view that cannot fit may be compacted once more; see `Compactions.may_compact_again`."""

    @property
    def reason(self) -> Reason | None:
        """The reason why a compaction is due; None if none is due, or if the request has had it."""
        if self.is_answered:
            return None
        if self.is_manual:
            return "manual"
        if self.used > self.budget:
            return "must_fit"
        if self.used >= self.compact_from:
            return "threshold"
        return "cold_cache" if self.is_cold else None


def decide(facts: Facts, limits: Limits, plan_for: PlanFor) -> Decision:
    """Returns the next step of a request; `plan_for` plans a compaction from the texts that are known now.

    A request goes on unchanged if no compaction is due, or none is worth making. If all texts of a compaction are
    known, it is made. If some are missing:

    1. Texts that were made ahead may be ready. A compaction with only these is made if it frees enough, compared with
       what stays. If the request could also go on, it must free three quarters of what the whole one would free.
    2. Below `defer_below` the request goes on. After a pause that has emptied the provider's cache it goes on too.
    3. Else it waits for the missing texts, until `wait_is_over`.
    4. Then it goes on if it fits. If it does not fit, fallbacks replace the missing texts.

    The caller carries the step out and decides again. This loop ends: after "wait", `wait_is_over` is true, or each
    missing text is known, as a summary, or as a fallback for one that failed. After "fall back" each text is known.
    """
    reason = facts.reason
    if reason is None:
        return "go on", None
    is_early = reason == "cold_cache"
    plan = plan_for(reason, facts.focus, known_only=is_early)
    may_go_on = is_early or facts.used < facts.defer_below
    if plan.missing and facts.is_ahead and not is_early:
        plan = _of_what_is_ready(plan, limits, plan_for, may_go_on=may_go_on)
    if not is_worthwhile(plan, limits, may_compact_again=facts.may_compact_again):
        return "go on", plan
    if not plan.missing:
        return "compact", plan
    if may_go_on:
        return "go on", plan
    if not facts.wait_is_over:
        return "wait", plan
    if facts.used <= facts.budget:
        return "go on", plan
    return "fall back", plan


def decide_for(facts: Facts, given: PlanInput) -> Decision:
    """Returns the decision of `decide` with plans that are made from `given`."""
    return decide(facts, given.limits, partial(plan_of, given))


def _of_what_is_ready(plan: Plan, limits: Limits, plan_for: PlanFor, *, may_go_on: bool) -> Plan:
    """Returns a plan with only the ready texts, if it frees enough; else the given plan, which lacks texts."""
    ready = plan_for(plan.reason, known_only=True)
    enough = _MOST_OF_IT * plan.freed if may_go_on else 0
    if ready.missing or ready.freed < enough or not _frees_enough(ready, limits):
        return plan
    return ready


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
    if plan.reason == "cold_cache":
        return plan.freed >= _COLD_SHARE * plan.tokens_before
    if plan.reason == "must_fit":
        return may_compact_again
    return _frees_enough(plan, limits)
