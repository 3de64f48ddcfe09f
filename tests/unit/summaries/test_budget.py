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
    budget.stored("a")
    assert total + wasted(budget) <= 56
    assert budget.is_spent


def test_a_bucket_is_never_more_than_full() -> None:
    """A thousand good summaries, and calls under way, buy no more wasted calls than a full bucket holds."""
    budget = CallBudget(Served())
    for _ in range(4):
        assert budget.take()
    for _ in range(1_000):
        budget.stored("a")
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


def pieces(budget: CallBudget, key: str, count: int) -> None:
    """So many answered pieces of one input."""
    for _ in range(count):
        assert budget.take()
        budget.end(used=True, piece_of=key)


def test_pieces_cost_nothing_once_their_summary_is_made() -> None:
    """They are paid for before, and given back then."""
    budget = CallBudget(Served())
    pieces(budget, "a", 20)
    assert budget.left == CAPACITY - 20
    assert budget.is_low
    budget.stored("a", pieces=20)
    assert wasted(budget) == CAPACITY


def test_pieces_whose_summary_is_never_made_are_paid_for() -> None:
    """They are forgotten, their key is asked for no more, or their answers are not used in the end."""
    budget = CallBudget(Served())
    pieces(budget, "a", 10)
    budget.lost("a")
    budget.stored("a", pieces=10)
    assert budget.left == CAPACITY - 10 + 2
    pieces(budget, "b", 4)
    budget.stored("b", pieces=1)
    assert budget.left == CAPACITY - 10 + 2 - 4 + 1 + 2


def test_held_pieces_never_lock_the_budget() -> None:
    """What requests add pays for the oldest of them, which give nothing back later: not more than a full bucket."""
    served = Served()
    budget = CallBudget(served)
    pieces(budget, "a", 12)
    pieces(budget, "b", 12)
    assert budget.is_spent
    served.requests += 60
    assert round(budget.left, 6) == 6
    assert wasted(budget) in (5, 6)
    budget.stored("b", pieces=12)
    left = budget.left
    budget.stored("a", pieces=12)
    assert left <= 12 + 2 + 1
    assert budget.left <= CAPACITY - 6 + 2 + 2
    served.requests += 10_000
    assert wasted(budget) == CAPACITY


def test_a_call_under_way_keeps_the_others_waiting_not_failing() -> None:
    """The last call may give its place back: the provider is not paused while it is under way."""
    budget = CallBudget(Served())
    wasted(budget, 23)
    assert budget.take()
    assert not budget.is_spent
    budget.end(used=True)
    assert budget.take()
