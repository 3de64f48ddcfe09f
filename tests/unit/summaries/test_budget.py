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
    """A thousand good summaries buy no more wasted calls than a full bucket holds."""
    budget = CallBudget(Served())
    for _ in range(1_000):
        assert budget.take()
        budget.end(used=True)
        budget.stored(pieces=9)
    assert wasted(budget) == CAPACITY


def test_pieces_are_given_back_once_their_summary_is_made() -> None:
    """Until then they are paid for: a provider that answers each piece and never the whole is bounded too."""
    budget = CallBudget(Served())
    for _ in range(20):
        assert budget.take()
        budget.end(used=False)
    assert budget.left == CAPACITY - 20
    assert budget.is_low
    budget.stored(pieces=20)
    assert wasted(budget) == CAPACITY


def test_a_call_under_way_keeps_the_others_waiting_not_failing() -> None:
    """The last call may give its place back: the provider is not paused while it is under way."""
    budget = CallBudget(Served())
    wasted(budget, 23)
    assert budget.take()
    assert not budget.is_spent
    budget.end(used=True)
    assert budget.take()


def test_it_is_low_below_a_third_and_spent_below_one_call() -> None:
    """Eight calls are not low; one call is not spent. Time alone adds nothing."""
    served = Served()
    budget = CallBudget(served)
    wasted(budget, 16)
    assert not budget.is_low
    wasted(budget, 1)
    assert budget.is_low
    wasted(budget, 6)
    assert not budget.is_spent
    served.requests -= 1
    wasted(budget, 1)
    assert budget.is_spent
