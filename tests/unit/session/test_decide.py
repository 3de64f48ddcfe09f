"""The rule of a request as a pure function: each part of it once."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_summarize.core.limits import Limits
from context_summarize.core.nodes import Node
from context_summarize.core.plan import Plan, Reason
from context_summarize.core.view import View
from context_summarize.session.decide import Facts, Step, decide

LIMITS = Limits(
    system_tokens=0,
    view_room=1_000,
    base=1_000,
    keep_recent=4,
    threshold=0.5,
    target=0.2,
    share=0.3,
    fan_in=3,
    shorten_above=None,
)


def plan(reason: Reason, freed: int = 400, missing: int = 0, before: int = 600) -> Plan:
    nodes = tuple(Node(f"key {at}", 0, at, at + 1, 50) for at in range(missing))
    after = before - freed
    return Plan(
        reason=reason, view=View(), notes_room=0, tokens_before=before, tokens_after=after, missing=nodes,
        segments=1, merged=0, level=1, fits=after <= LIMITS.view_room, reached=True,
    )  # fmt: skip


def decided(facts: dict[str, Any], whole: dict[str, int], **others: dict[str, int]) -> Step:
    """The step where the plans of the whole and of what is ready are these."""

    def make(reason: Reason, focus: str | None = None, *, known_only: bool = False) -> Plan:
        return plan(reason, **{"whole": whole, **others}.get("ready" if known_only else "whole", whole))

    return decide(Facts(**{"used": 600, "budget": 1_000, "compact_from": 500, **facts}), LIMITS, make)[0]


MISSING, NOTHING = {"missing": 2}, {"freed": 0}
AHEAD, PUT_OFF = {"is_ahead": True}, {"is_ahead": True, "defer_below": 750}
HUGE = {"freed": 500, "before": 2_000}
STEPS: dict[str, list[tuple[dict[str, Any], dict[str, int], dict[str, int], str]]] = {
    "what is not due is not made": [
        ({}, {}, {}, "compact"),
        ({"used": 499}, {}, {}, "go on"),
        ({"used": 1_000, "compact_from": math.inf}, {}, {}, "go on"),
        ({"used": 1_001, "compact_from": math.inf}, {}, {}, "compact"),
        ({"used": 499, "is_cold": True}, {}, {}, "compact"),
        ({"used": 1, "is_manual": True}, {}, {}, "compact"),
        ({"is_answered": True}, {}, {}, "go on"),
    ],
    "what is missing is waited for until that is in vain; a view that fits is then sent as it is": [
        ({}, MISSING, NOTHING, "wait"),
        ({"wait_is_over": True}, MISSING, NOTHING, "go on"),
        ({"wait_is_over": True, "used": 1_001}, MISSING, NOTHING, "fall back"),
        ({"wait_is_over": True, "is_manual": True}, MISSING, NOTHING, "go on"),
        ({"is_manual": True, "used": 100}, MISSING, NOTHING, "wait"),
    ],
    "a request that may be put off does not wait": [
        (PUT_OFF, MISSING, NOTHING, "go on"),
        ({"is_ahead": True, "defer_below": 600}, MISSING, NOTHING, "wait"),
        ({"used": 400, "is_cold": True}, MISSING, NOTHING, "go on"),
    ],
    "what is ready is taken then if it is three quarters of the whole, and frees enough for what it leaves": [
        (PUT_OFF, MISSING, {"freed": 300}, "compact"),
        (PUT_OFF, MISSING, {"freed": 299}, "go on"),
        (PUT_OFF, MISSING, {"freed": 300, "before": 540}, "go on"),
        (PUT_OFF, MISSING, {"freed": 99, "before": 400}, "go on"),
    ],
    "any ready part that frees enough is taken where the request would wait": [
        (AHEAD, MISSING, {"freed": 266}, "compact"),
        (AHEAD, MISSING, {"freed": 265}, "wait"),
        (AHEAD, MISSING, {"freed": 200, "before": 500}, "wait"),
        (AHEAD | {"used": 1_500}, {"missing": 2, "before": 1_500}, {"freed": 400, "before": 1_500}, "wait"),
        ({}, MISSING, {"freed": 390}, "wait"),
    ],
    "a compaction must be worth making, or be needed": [
        ({}, {"freed": 265}, {}, "go on"),
        ({}, {"freed": 266}, {}, "compact"),
        ({"is_manual": True}, {"freed": 1}, {}, "compact"),
        ({"is_manual": True}, NOTHING, {}, "go on"),
        ({"used": 1_001}, {"freed": 1}, {}, "compact"),
        ({"used": 1_001}, NOTHING, {}, "go on"),
    ],
    "a view that cannot fit is compacted as often as the throttle allows": [
        ({"used": 2_000}, HUGE, {}, "compact"),
        ({"used": 2_000, "may_compact_again": False}, HUGE, {}, "go on"),
    ],
}


@pytest.mark.parametrize("rule", STEPS)
def test_the_rule(rule):
    """By what is used, what the whole compaction would free or lack, and what the ready part would free."""
    for facts, whole, ready, step in STEPS[rule]:
        assert (facts, whole, ready, decided(facts, whole, ready=ready)) == (facts, whole, ready, step)
