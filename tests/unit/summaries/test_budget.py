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


def test_calls_under_way_and_held_pieces_count_when_the_bucket_is_filled() -> None:
    """With what they may give back it holds 24 calls, never more, and never fewer."""
    served = Served()
    budget = CallBudget(served)
    for _ in range(3):
        assert budget.take()
    pieces(budget, "a", 2)
    served.requests += 10
    assert budget.left == CAPACITY - 3 - 1, "one call pays for one of the two pieces"
    for _ in range(3):
        budget.end(used=True)
    assert budget.left == CAPACITY - 1
    budget.stored("a", pieces=2)
    assert budget.left == CAPACITY


def test_what_requests_add_pays_for_the_oldest_pieces_first() -> None:
    """Those of another key keep what they have; a number of pieces is not paid for twice."""
    served = Served()
    budget = CallBudget(served)
    pieces(budget, "a", 2)
    pieces(budget, "b", 3)
    served.requests += 30
    assert round(budget.left, 6) == CAPACITY - 2
    budget.stored("a", pieces=2)
    assert round(budget.left, 6) == CAPACITY, "the two calls of a summary pay for the pieces of the other one"
    assert budget.take()
    budget.end(used=False)
    budget.stored("b")
    assert budget.left == CAPACITY


def test_it_is_low_below_a_third_and_spent_below_one_call() -> None:
    """Eight calls are not low; one call is not spent. Time alone adds nothing."""
    served = Served()
    budget = CallBudget(served)
    wasted(budget, 16)
    assert budget.left == 8
    assert not budget.is_low
    wasted(budget, 1)
    assert budget.left == 7
    assert budget.is_low
    wasted(budget, 6)
    assert budget.left == 1
    assert not budget.is_spent
    served.requests -= 1
    assert budget.left == 1
    wasted(budget, 1)
    assert budget.is_spent


def test_a_used_answer_gives_back_one_call_and_a_summary_two() -> None:
    """Exactly: the bound on wasted calls rests on it."""
    budget = CallBudget(Served())
    wasted(budget, 10)
    assert budget.take()
    budget.end(used=True)
    assert budget.left == CAPACITY - 10
    budget.stored("a")
    assert budget.left == CAPACITY - 8
    pieces(budget, "b", 1)
    budget.stored("b", pieces=5)
    assert budget.left == CAPACITY - 6
