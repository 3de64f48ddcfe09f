"""The allowance for calls that bring no usable summary."""

from __future__ import annotations

from context_summarize.summaries.budget import CAPACITY, PER_REQUEST, CallBudget


class Served:
    """Requests served so far."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self) -> int:
        return self.requests


def wasted(budget: CallBudget, most: int = 1_000) -> int:
    """Calls that can be wasted now, one after the other."""
    for calls in range(most):
        if not budget.take():
            return calls
        budget.end(used=False)
    return most


def test_in_any_300_requests_at_most_54_calls_are_wasted_and_two_for_each_summary() -> None:
    """A full bucket, what requests add, and what summaries add."""
    served = Served()
    budget = CallBudget(served)
    total = wasted(budget)
    assert total == CAPACITY
    for _ in range(300):
        served.requests += 1
        total += wasted(budget)
    assert CAPACITY + 300 * PER_REQUEST - 1 <= total <= CAPACITY + 300 * PER_REQUEST == 54
    budget.stored()
    assert total + wasted(budget) <= 56
    assert budget.is_spent


def test_a_bucket_is_never_more_than_full() -> None:
    """A thousand good summaries, and calls under way, buy no more wasted calls than a full bucket holds."""
    budget = CallBudget(Served())
    for _ in range(4):
        assert budget.take()
    for _ in range(1_000):
        budget.stored()
    for _ in range(4):
        budget.end(used=True)
    assert wasted(budget) == CAPACITY


def test_calls_whose_answers_are_used_cost_nothing() -> None:
    """However many there are."""
    budget = CallBudget(Served())
    for _ in range(1_000):
        assert budget.take()
        budget.end(used=True)
    assert not budget.is_low
    assert not budget.is_spent


def test_lost_pieces_are_paid_for() -> None:
    """Their answers were used for nothing."""
    budget = CallBudget(Served())
    budget.lost(20)
    assert budget.is_low
    assert wasted(budget) == CAPACITY - 20
    budget.lost(5)
    assert not budget.take()


def test_a_call_under_way_keeps_the_others_waiting_not_failing() -> None:
    """The last call may give its place back: the provider is not paused while it is under way."""
    budget = CallBudget(Served())
    budget.lost(23)
    assert budget.take()
    assert not budget.is_spent
    budget.end(used=True)
    assert budget.take()
