"""The rule of a request as a pure function: each part of it once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_summarize.config import Config
from context_summarize.core.cut import Cut
from context_summarize.core.draft import Plan, Reason
from context_summarize.core.nodes import Node
from context_summarize.session.decide import Facts, Step, decide
from context_summarize.session.request_limits import own_limits
from tests.support.paths import ROOT

LIMITS = own_limits(Config(compact_threshold=0.5), 1_000, 0)


def plan(reason: Reason, freed: int = 400, missing: int = 0, before: int = 600) -> Plan:
    nodes = tuple(Node(f"key {at}", 0, at, at + 1, 50) for at in range(missing))
    after = before - freed
    return Plan(
        reason=reason, cut=Cut(), tokens_before=before, tokens_after=after, missing=nodes, segments=1, merged=0,
        freed=freed, level=1, fits=after <= LIMITS.view_room,
    )  # fmt: skip


def decided(given: dict[str, Any], whole: dict[str, int], ready: dict[str, int]) -> Step:
    """The step where the plans of the whole and of what is ready are these."""
    facts = Facts(**{"used": 600, "room": 1_000, "compact_from": 500, **given})
    if facts.reason is None:
        return "go on"
    return decide(facts, LIMITS, plan(facts.reason, **whole), plan(facts.reason, **ready))[0]


CASES = [json.loads(line) for line in (ROOT / "tests/corpora/decisions.jsonl").read_text("ascii").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['step']}")
def test_the_rule(case):
    """By what is used, what the whole compaction would free or lack, and what the ready part would free."""
    assert decided(case["facts"], case["whole"], case["ready"]) == case["step"]


def test_where_a_compaction_is_due_and_what_it_leaves_are_shares_of_the_base():
    """Here of 1,000 tokens."""
    assert (LIMITS.threshold_room, LIMITS.target_room, LIMITS.most_left) == (500, 150, 400)
    assert [LIMITS.due_after(left) for left in (0, 200, 600)] == [500, 520, 760]


def test_the_thread_has_a_tenth_of_a_small_base_and_less_of_a_larger_one():
    """By default 4,400 tokens at most."""
    small = [own_limits(Config(summary_share=0.5), budget, 0).notes_room for budget in (8_000, 16_000, 32_000)]
    assert small[:2] == [800, 1_600]
    assert small[2] < 2_500
    assert own_limits(Config(), 1_000_000, 0, 60_000).notes_room == pytest.approx(4_400, rel=0.01)
