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
"""Share of what a compaction would free that makes it worth making with what is ready, if it could wait."""

Step = Literal["go on", "compact", "wait", "fall back"]
Decision = tuple[Step, Plan | None]
"""The next step, and its plan; None where nothing was planned."""


@dataclass(frozen=True, slots=True)
class Look:
    """The conversation as a request sees it; sizes are tokens of the request, as the provider counts."""

    chat: Conversation
    limits: RequestLimits
    """Those of the request, less the rows that stand beside the view."""
    rendering: Rendering
    used: int
    """The request as it would go out now."""
    due: int
    """From here on the next compaction is due."""
    may_prefetch: bool
    """The summaries of that compaction may be made before it is due."""
    is_near: bool
    """A compaction may be due, or its summaries may be made ahead."""


@dataclass(slots=True)
class Tried:
    """The attempts of a request so far."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the host gives it up: then it waits no more."""
    until: float | None = None
    """Time of the clock at which its waiting ends; None before it waits."""
    waited: float = 0.0
    """Seconds."""
    in_vain: bool = False
    """Waiting has not brought what is missing."""
    is_late: bool = False
    """It goes on without what was waited for."""
    made: int = 0
    """Compactions: one, and another only where rows that came meanwhile do not fit."""
    saved: int = 0
    """Tokens that the last of them has saved, as the provider counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The facts of a decision, beside its plans. Tokens are those of the whole request, as the provider counts."""

    used: int
    budget: int
    compact_from: float
    """Tokens from which on a compaction is due; infinite where none is made by itself."""
    defer_below: float = 0.0
    """A request below this may go on while the texts of its compaction are being made."""
    is_ahead: bool = False
    """Texts are made ahead of need, so that a part of a compaction may be ready."""
    is_cold: bool = False
    """The provider's cache holds nothing of the request any more: an early compaction costs nothing."""
    is_manual: bool = False
    """`compact()` asks for it."""
    focus: str | None = None
    is_answered: bool = False
    """The request has made its compaction, or was answered before and nothing is new: hosts may ask three times."""
    in_vain: bool = False
    """Waiting brings nothing more: the deadline has passed, the host has cancelled, or a text was late before."""
    may_fire: bool = True
    """The throttle allows a compaction of a view that cannot fit."""

    @property
    def reason(self) -> Reason | None:
        """Why a compaction is due; None where none is."""
        if self.is_manual:
            return "manual"
        if self.used > self.budget:
            return "must_fit"
        if self.used >= self.compact_from:
            return "threshold"
        return "cold_cache" if self.is_cold else None

    @property
    def goes_on(self) -> bool:
        """True where nothing needs to be planned."""
        return self.reason is None or self.is_answered


def decide(case: Case, limits: Limits, make: Callable[[CompactionRequest], Plan]) -> Decision:
    """Returns the next step of a request; `make` plans a compaction of what is known now.

    A request goes on as it is where no compaction is due, or none is worth making. A compaction whose texts are all
    there is made. Where some are missing:

    1. A compaction of what is ready is made, if texts are made ahead and it frees enough for what it leaves. As
       long as the request may be put off, it must free three quarters of what the one that is due would.
    2. Below `defer_below` the request goes on. After a pause that has emptied the provider's cache it does so too.
    3. Else it waits for the missing texts, until waiting is in vain.
    4. Then it goes on if it fits; else fallbacks take the place of what is missing.

    Whoever acts on it decides again afterwards. That comes to an end: after "wait" every missing text has a size, by a
    summary or by the fallback of one that failed, or waiting was in vain; after "fall back" each has one.
    """
    reason = case.reason
    if reason is None or case.goes_on:
        return "go on", None
    is_early = reason == "cold_cache"
    plan = make(CompactionRequest(reason, case.focus, known_only=is_early))
    defers = is_early or case.used < case.defer_below
    if plan.missing and case.is_ahead and not is_early:
        plan = _of_what_is_ready(plan, limits, make, defers=defers)
    if not is_worthwhile(plan, limits, may_fire=case.may_fire):
        return "go on", plan
    if not plan.missing:
        return "compact", plan
    if defers:
        return "go on", plan
    if not case.in_vain:
        return "wait", plan
    return ("fall back" if case.used > case.budget else "go on"), plan


def decide_for(case: Case, given: PlanInput) -> Decision:
    """Returns the same, with plans made from this."""
    return decide(case, given.limits, partial(plan_of, given))


def _of_what_is_ready(plan: Plan, limits: Limits, make: Callable[[CompactionRequest], Plan], *, defers: bool) -> Plan:
    """Returns the plan of what is ready where that is enough; else the one that is waited for, or put off."""
    ready = make(CompactionRequest(plan.reason, known_only=True))
    enough = _MOST_OF_IT * plan.freed if defers else 0
    return ready if ready.freed >= enough and _frees_enough(ready, limits) and not ready.missing else plan


def _frees_enough(plan: Plan, limits: Limits) -> bool:
    """Whether a plan frees enough for what it leaves, also where the room is nearly full: that is read anew once."""
    least = GROWTH * limits.threshold * plan.tokens_after
    return plan.fits and plan.freed > least and plan.tokens_before >= limits.again_above(plan.tokens_after)


def is_worthwhile(plan: Plan, limits: Limits, *, may_fire: bool) -> bool:
    """Returns True if a plan frees enough, or is needed to fit.

    Args:
        may_fire: the throttle allows a compaction of a view that cannot fit.
    """
    if plan.freed <= 0:
        return False
    if plan.reason == "manual" or (plan.reason == "must_fit" and plan.fits):
        return True
    if plan.reason == "cold_cache":
        return 4 * plan.freed >= plan.tokens_before  # the cache holds nothing any more
    return may_fire if plan.reason == "must_fit" else _frees_enough(plan, limits)
