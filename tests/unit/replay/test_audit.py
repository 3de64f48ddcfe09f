"""What the checks of a replay count, and what breaks them."""

from __future__ import annotations

import pytest

from context_summarize.replay.audit import Audit
from context_summarize.replay.result import ReplayResult
from context_summarize.testing import assistant, result, user


def audit(*fed) -> tuple[Audit, ReplayResult]:
    told = ReplayResult(provider="x", budget=1_000)
    return Audit(list(fed), told, len), told


def broken(told: ReplayResult) -> list[tuple[str, int, str | None]]:
    return [(check.name, check.broken, check.first) for check in told.checks if not check.ok]


def test_rows_that_stay_are_counted_against_those_of_the_view_before():
    watch, told = audit(user("a"))

    watch.view(2, [user("a"), assistant("b")], made_compaction=False)
    watch.view(3, [user("a"), assistant("b"), user("c")], made_compaction=False)
    watch.view(4, [user("a"), assistant("changed"), user("c")], made_compaction=True)

    assert (told.stable_rows, told.compared_rows) == (2 + 1, 2 + 3)
    assert told.requests == 3


def test_a_changed_and_a_lost_message_break_the_history():
    watch, told = audit(user("a"), user("b"), user("c"))

    watch.history([user("a"), user("B")])

    assert broken(told) == [("History intact", 2, "message 2 is not what was added")]
    watch, told = audit(user("a"))
    watch.history([])
    assert broken(told) == [("History intact", 1, "1 rows were added, 0 are kept")]


def test_a_result_without_its_call_breaks_the_pairs_once_a_view():
    watch, told = audit(user("a"))

    watch.view(5, [user("a"), result("1"), result("2")], made_compaction=False)

    assert broken(told) == [("Pairs intact", 1, "the request before row 5, view row 1: result '1' without its call")]


def test_a_row_that_the_host_refuses_is_named():
    watch, told = audit(user("a"))

    watch.view(5, [user("a"), {"role": "assistant", "content": None}], made_compaction=False)

    [(name, count, first)] = broken(told)
    assert (name, count) == ("Valid rows", 1)
    assert first is not None
    assert first.startswith("the request before row 5, view row 1: 2 validation errors for Message content")
    assert "\n" not in first


@pytest.mark.parametrize(
    "first", [assistant("b"), {"role": "user", "content": [{"type": "tool_result", "tool_call_id": "1", "output": ""}]}]
)
def test_a_view_opens_with_a_user_message_where_the_history_does_or_a_compaction_ran(first):
    system = {"role": "system", "content": "s"}

    for fed, made_compaction, wrong in ((user("a"), False, 1), (assistant("a"), True, 1), (assistant("a"), False, 0)):
        watch, told = audit(system, fed)
        watch.view(3, [system, first], made_compaction=made_compaction)
        assert told.checks[2].broken == wrong
    watch, told = audit(system)
    watch.view(3, [system], made_compaction=True)
    assert told.checks[2].ok


def test_the_first_problem_is_kept_and_views_over_the_budget_are_counted():
    watch, told = audit(user("a"))

    watch.view(2, [user("x" * 1_100)], made_compaction=False)
    watch.view(4, [user("x" * 1_200)], made_compaction=False)
    watch.view(6, [user("x" * 997)], made_compaction=False)

    assert broken(told) == [("Within budget", 2, "the request before row 2 holds 1,103 tokens, the budget is 1,000")]
    assert told.largest_view == 1_203
    assert told.failed is told.checks[4]
