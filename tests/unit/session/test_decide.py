"""The rule of a request as a pure function: each part of it once, and that it comes to its end whatever happens."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.core.limits import Limits
from context_summarize.core.nodes import Node
from context_summarize.core.plan import CompactionRequest, Plan
from context_summarize.core.view_state import ViewState
from context_summarize.session.decide import Case, Decision, decide

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


def plan(ask: CompactionRequest, freed: int = 400, missing: int = 0, before: int = 600) -> Plan:
    nodes = tuple(Node(f"key {at}", 0, at, at + 1, 50) for at in range(missing))
    after = before - freed
    return Plan(
        reason=ask.reason, view=ViewState(), notes_room=0, tokens_before=before, tokens_after=after, missing=nodes,
        segments=1, merged=0, level=1, fits=after <= LIMITS.view_room, reached=True,
    )  # fmt: skip


def decided(case: dict[str, Any], whole: dict[str, int], **others: dict[str, int]) -> Decision:
    """The decision where the plans of the whole, of what is ready and of an easy compaction are these."""

    def make(ask: CompactionRequest) -> Plan:
        kind = "ready" if ask.known_only else "easy" if ask.easy else "whole"
        return plan(ask, **{"whole": whole, **others}.get(kind, whole))

    return decide(Case(**{"used": 600, "budget": 1_000, "compact_from": 500, **case}), LIMITS, make)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({}, "threshold"),
        ({"used": 499}, None),
        ({"used": 499, "is_cold": True}, "cold_cache"),
        ({"used": 1_000, "compact_from": math.inf}, None),
        ({"used": 1_001, "compact_from": math.inf}, "must_fit"),
        ({"used": 1, "is_manual": True}, "manual"),
    ],
)
def test_a_compaction_has_a_reason(case: dict[str, Any], reason: str | None) -> None:
    found = Case(**{"used": 600, "budget": 1_000, "compact_from": 500, **case})
    assert found.reason == reason
    assert (decided(case, {}).step == "go on") is (reason is None)


@pytest.mark.parametrize(
    ("case", "step"),
    [
        ({}, "wait"),
        ({"in_vain": True}, "go on"),
        ({"in_vain": True, "used": 1_001}, "fall back"),
        ({"in_vain": True, "is_manual": True}, "go on"),
        ({"is_answered": True}, "go on"),
        ({"is_ahead": True, "defer_below": 750}, "go on"),
        ({"is_ahead": True, "defer_below": 600}, "wait"),
        ({"is_manual": True, "used": 100}, "wait"),
        ({"used": 400, "is_cold": True}, "go on"),
    ],
)
def test_what_is_missing_is_waited_for_until_that_is_in_vain(case: dict[str, Any], step: str) -> None:
    """A view that fits is then sent as it is; a request that may be put off does not wait at all."""
    assert decided(case, {"missing": 2}, ready={"freed": 0}).step == step


@pytest.mark.parametrize(
    ("freed", "before", "step"), [(300, 600, "compact"), (299, 600, "go on"), (300, 540, "go on"), (99, 400, "go on")]
)
def test_with_room_left_what_is_ready_is_taken_if_it_is_most_of_it(freed: int, before: int, step: str) -> None:
    """Three quarters of what the whole one frees, and enough for what it leaves."""
    case = {"is_ahead": True, "defer_below": 750}
    found = decided(case, {"missing": 2}, ready={"freed": freed, "before": before})
    assert found.step == step


@pytest.mark.parametrize(("freed", "before", "step"), [(266, 600, "compact"), (265, 600, "wait"), (200, 500, "wait")])
def test_without_room_any_ready_part_that_relieves_is_taken(freed: int, before: int, step: str) -> None:
    """It frees enough for what it leaves: two fifths of the rest."""
    assert decided({"is_ahead": True}, {"missing": 2}, ready={"freed": freed, "before": before}).step == step


@pytest.mark.parametrize(
    ("case", "freed", "step"),
    [
        ({}, 265, "go on"),
        ({}, 266, "compact"),
        ({"is_manual": True}, 1, "compact"),
        ({"is_manual": True}, 0, "go on"),
        ({"used": 1_001}, 1, "compact"),
        ({"used": 1_001}, 0, "go on"),
    ],
)
def test_a_compaction_must_be_worth_making(case: dict[str, Any], freed: int, step: str) -> None:
    assert decided(case, {"freed": freed}).step == step


@given(
    missing=st.integers(0, 6),
    outcomes=st.lists(st.sampled_from(["all", "late", "more"]), min_size=1),
    case=st.fixed_dictionaries(
        {
            "used": st.integers(0, 1_500),
            "is_ahead": st.booleans(),
            "is_cold": st.booleans(),
            "is_manual": st.booleans(),
            "defer_below": st.sampled_from([0.0, 750.0]),
        }
    ),
)
def test_it_comes_to_its_end(missing: int, outcomes: list[str], case: dict[str, Any]) -> None:
    """Whatever comes of each wait: a plan of seven texts needs no more rounds than there are texts, and one more."""
    in_vain, steps, left = False, list[str](), missing
    for outcome in [*outcomes, *["all"] * 20]:
        found = decided({**case, "in_vain": in_vain}, {"missing": left}, ready={"freed": 0})
        steps.append(found.step)
        if found.step in ("go on", "compact"):
            break
        if found.step == "wait" and outcome == "late":
            in_vain = True
        else:  # what was missing has a size now, and the next plan may lack others
            left = left - 1 if outcome == "more" else 0
    assert steps[-1] in ("go on", "compact")
    assert len(steps) <= missing + 2
    assert "wait" not in steps[steps.index("fall back") :] if "fall back" in steps else True
    if case["used"] > 1_000 and not case["is_manual"]:
        assert steps[-1] == "compact"
