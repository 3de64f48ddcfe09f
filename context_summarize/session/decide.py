"""The one decision about a request: go on, compact, or wait for the summaries that a compaction lacks. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from context_summarize.core.draft import PlanInput
from context_summarize.core.limits import GROWTH, Limits
from context_summarize.core.plan import CompactionRequest, Plan, Reason
from context_summarize.core.plan import plan as plan_of
from context_summarize.core.render import Rendering
from context_summarize.session.conversation import Conversation
from context_summarize.session.request_limits import RequestLimits

_MOST_OF_IT = 0.75
"""While a request could go on, a compaction of the ready texts must free this share of what all texts would free."""

Step = Literal["go on", "compact", "wait", "fall back"]
Decision = tuple[Step, Plan | None]
"""The next step, and its plan; None where nothing was planned."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The conversation as a request sees it; sizes are tokens of the request, as the provider counts."""

    chat: Conversation
    limits: RequestLimits
    """The limits of the request, less the rows that are shown beside the view."""
    rendering: Rendering
    used: int
    """The request as it would go out now."""
    due: int
    """Tokens of the request from which on the next compaction is due."""
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
    """True if the request has waited and texts are still missing."""
    is_late: bool = False
    """True if the request goes on without texts that it has waited for."""
    made: int = 0
    """Compactions. A second one is made only if rows that came meanwhile do not fit."""
    saved: int = 0
    """Tokens that the last compaction has saved, as the provider counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a decision, beside its plans. Tokens are those of the whole request, as the provider counts."""

    used: int
    budget: int
    compact_from: float
    """Tokens from which on a compaction is due; infinite if none is made automatically."""
    defer_below: float = 0.0
    """Tokens. A smaller request may go on while the texts of its compaction are being made."""
    is_ahead: bool = False
    """True if texts are made ahead of need, so that a part of a compaction may be ready."""
    is_cold: bool = False
    """True if the provider's cache holds nothing of the request any more: an early compaction costs nothing."""
    is_manual: bool = False
    """True for a request of `compact()`."""
    focus: str | None = None
    is_answered: bool = False
    """True if the request has made its compaction, or was answered before and nothing is new: hosts may ask thrice."""
    wait_is_over: bool = False
    """True after the deadline, after the host's cancellation, or if a text was late before: more waiting is useless."""
    may_compact_again: bool = True
    """True if the throttle allows a compaction of a view that cannot fit."""

    @property
    def reason(self) -> Reason | None:
        """The reason why a compaction is due; None if none is due."""
        if self.is_manual:
            return "manual"
        if self.used > self.budget:
            return "must_fit"
        if self.used >= self.compact_from:
            return "threshold"
        return "cold_cache" if self.is_cold else None

    @property
    def goes_on(self) -> bool:
        """True if nothing needs to be planned."""
        return self.reason is None or self.is_answered


def decide(facts: Facts, limits: Limits, make: Callable[[CompactionRequest], Plan]) -> Decision:
    """Returns the next step of a request; `make` plans a compaction from the texts that are known now.

    A request goes on unchanged if no compaction is due, or none is worth making. If all texts of a compaction are
    there, it is made. If some are missing:

    1. If texts are made ahead, a compaction of the ready ones is made, if it frees enough for what it leaves. Where
       the request could go on instead, it must free three quarters of what the whole compaction would.
    2. Below `defer_below` the request goes on. After a pause that has emptied the provider's cache it goes on too.
    3. Else it waits for the missing texts, until `wait_is_over`.
    4. Then it goes on if it fits. If it does not fit, fallbacks replace the missing texts.

    The caller carries the step out and decides again. That ends: after "wait" each missing text has a size, from a
    summary or from the fallback of a failed one, or `wait_is_over` is true. After "fall back" each text has a size.
    """
    reason = facts.reason
    if reason is None or facts.goes_on:
        return "go on", None
    is_early = reason == "cold_cache"
    plan = make(CompactionRequest(reason, facts.focus, known_only=is_early))
    defers = is_early or facts.used < facts.defer_below
    if plan.missing and facts.is_ahead and not is_early:
        plan = _of_what_is_ready(plan, limits, make, defers=defers)
    if not is_worthwhile(plan, limits, may_compact_again=facts.may_compact_again):
        return "go on", plan
    if not plan.missing:
        return "compact", plan
    if defers:
        return "go on", plan
    if not facts.wait_is_over:
        return "wait", plan
    return ("fall back" if facts.used > facts.budget else "go on"), plan


def decide_for(facts: Facts, given: PlanInput) -> Decision:
    """Returns the decision of `decide` with plans that are made from `given`."""
    return decide(facts, given.limits, partial(plan_of, given))


def _of_what_is_ready(plan: Plan, limits: Limits, make: Callable[[CompactionRequest], Plan], *, defers: bool) -> Plan:
    """Returns a plan for the ready texts if it frees enough; else the given plan, whose texts are still missing."""
    ready = make(CompactionRequest(plan.reason, known_only=True))
    enough = _MOST_OF_IT * plan.freed if defers else 0
    if ready.missing or ready.freed < enough or not _frees_enough(ready, limits):
        return plan
    return ready


def _frees_enough(plan: Plan, limits: Limits) -> bool:
    """Returns True if a plan frees enough: the provider must read the rows that it leaves once more, without cache."""
    least = GROWTH * limits.threshold * plan.tokens_after
    return plan.fits and plan.freed > least and plan.tokens_before >= limits.due_after(plan.tokens_after)


def is_worthwhile(plan: Plan, limits: Limits, *, may_compact_again: bool) -> bool:
    """Returns True if a plan frees enough, or is needed to fit.

    Args:
        may_compact_again: True if the throttle allows a compaction of a view that cannot fit.
    """
    if plan.freed <= 0:
        return False
    if plan.reason == "manual" or (plan.reason == "must_fit" and plan.fits):
        return True
    if plan.reason == "cold_cache":
        return 4 * plan.freed >= plan.tokens_before  # the provider's cache is empty
    return may_compact_again if plan.reason == "must_fit" else _frees_enough(plan, limits)
