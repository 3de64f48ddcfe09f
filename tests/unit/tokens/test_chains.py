"""The meter and providers that chain on their server: their figures hold earlier requests too."""

from __future__ import annotations

from itertools import accumulate

import pytest

from context_summarize.tokens.calibration import Meter

TOOLS = 9_000


def told(meter: Meter, estimate: int, actual: int, *, may_chain: bool = True) -> bool:
    meter.served(estimate, may_chain=may_chain)
    return meter.observe({"input_tokens": actual})


@pytest.mark.parametrize("growth", [200, 1_000, 5_000])
@pytest.mark.parametrize("tools", [0, TOOLS])
def test_a_chain_does_not_move_the_measuring(growth: int, tools: int) -> None:
    """Each figure is the whole chain: what was sent in every request since its beginning."""
    meter, views = Meter(), [4_000 + growth * turn for turn in range(40)]
    assert told(meter, views[0], views[0] + tools, may_chain=False)
    for view, chain in zip(views[1:], list(accumulate(views))[1:], strict=True):
        told(meter, view, chain + tools)
        assert meter.correct(view) == pytest.approx(view + tools, rel=0.01)


def test_a_chain_that_is_taken_up_from_an_earlier_process_says_nothing() -> None:
    """Nothing was measured before; the first figures are those of the restored chain."""
    meter = Meter()
    for turn in range(10):
        assert not told(meter, 5_000 + 400 * turn, 60_000 + 5_000 * turn)
    assert meter.correct(5_000) == 5_000


@pytest.mark.parametrize("before", [[], [5_000]], ids=["from the start", "later on"])
def test_tools_are_learned_from_the_second_figure_where_rows_carry_ids(before: list[int]) -> None:
    """Their share stays as large as it is, and that of a chain does not."""
    meter = Meter()
    for view in before:
        assert told(meter, view, view, may_chain=False)
    assert not told(meter, 6_000, 6_000 + TOOLS)
    assert told(meter, 6_300, 6_300 + TOOLS)
    assert meter.correct(6_500) == pytest.approx(6_500 + TOOLS, rel=0.02)


def test_after_a_compaction_the_chain_is_cut_and_the_figure_counts() -> None:
    meter = Meter()
    assert told(meter, 5_000, 5_000, may_chain=False)
    assert not told(meter, 6_000, 11_000)
    assert told(meter, 3_000, 3_600, may_chain=False)
    assert meter.correct(3_000) == 3_600


class TestForegroundUsage:
    """A loop that knows which response was for the view says so itself."""

    def test_a_claimed_view_is_measured_by_its_recorder_alone(self) -> None:
        meter = Meter()
        meter.served(10_000)
        record = meter.claim()
        assert not meter.observe({"input_tokens": 17_000})
        assert record(input_tokens=9_000, cache_write_tokens=3_000)
        assert meter.correct(10_000) == 12_000

    def test_the_next_view_is_heard_of_by_events_again(self) -> None:
        meter = Meter()
        meter.served(10_000)
        meter.claim()
        meter.served(11_000)
        assert meter.observe({"input_tokens": 12_000})

    def test_a_claim_before_any_view_records_nothing(self) -> None:
        assert not Meter().claim()(input_tokens=5)
