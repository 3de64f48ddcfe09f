"""The one formula that says when the next compaction begins."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.config import Config
from context_summarize.core.limits import Limits
from context_summarize.session.request_limits import own_limits

SHARES = st.floats(0.05, 1.0)
TOKENS = st.integers(0, 1_000_000)


def limits(budget: int, cap: int | None = None, **settings: object) -> Limits:
    return own_limits(Config.from_mapping(settings), budget, 0, cap)


@given(share=SHARES, room=TOKENS, cap=TOKENS, left=TOKENS)
def test_the_point_moves_smoothly_with_what_is_left_and_stays_within_the_room(share, room, cap, left):
    """No cliff: one token more that is left moves it by at most two."""
    own = limits(room, cap=cap, compact_threshold=[share, 2_000])
    point = own.due_after(left)
    assert own.threshold_room <= point <= max(room, left)
    assert point <= own.due_after(left + 1) <= point + 2


@given(room=st.integers(0, 146_000), left=TOKENS)
def test_with_the_defaults_a_request_grows_by_half_of_what_a_compaction_leaves_free(room, left):
    """In windows that the threshold in tokens does not bound."""
    own = limits(room)
    assert own.due_after(left) - left >= (room - left) / 2 - 1


def test_a_threshold_in_tokens_bounds_all_shares_in_a_large_window():
    """A window of a million is used as one of 200,000 where both compact at 130,000."""
    large = limits(1_000_000, cap=130_000, compact_threshold=[0.65, 130_000])
    small = limits(200_000, cap=130_000, compact_threshold=[0.65, 130_000])
    assert large.threshold_room == small.threshold_room == 130_000
    assert (large.target_room, large.notes_room, large.base) == (small.target_room, small.notes_room, small.base)
    assert limits(40_000, cap=130_000, compact_threshold=[0.65, 130_000]).threshold_room == 26_000
