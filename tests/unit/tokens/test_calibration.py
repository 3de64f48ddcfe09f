"""The meter that the provider's figures correct."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest

from context_summarize.tokens.calibration import Meter


def feed(meter: Meter, *observations: tuple[int, int]) -> None:
    for estimate, actual in observations:
        meter.served(estimate)
        assert meter.observe({"input_tokens": actual})


class TestMeter:
    def test_without_observations_nothing_is_corrected(self) -> None:
        """Ratio 1, constant 0."""
        meter = Meter()
        assert [meter.correct(0), meter.correct(5_000), meter.invert(5_000)] == [0, 5_000, 5_000]

    def test_cache_writes_are_added_and_cache_reads_are_not(self) -> None:
        """input_tokens holds the cache reads in some hosts."""
        meter = Meter()
        meter.served(10_000)
        assert meter.observe({"input_tokens": 4_000, "cache_write_tokens": 7_000, "cache_read_tokens": 50_000})
        assert meter.correct(10_000) == 11_000

    @pytest.mark.parametrize("estimates", [(6_000, 8_000, 11_000), (10_000, 10_500, 14_000), (3_000, 12_000, 30_000)])
    def test_three_growing_views_give_ratio_and_constant(self, estimates: tuple[int, ...]) -> None:
        """1.35 times the estimate and 9,000 of tools are found to within 5 % between 3k and 30k."""
        meter = Meter()
        feed(meter, *[(e, round(1.35 * e + 9_000)) for e in estimates])
        for estimate in range(3_000, 30_001, 1_000):
            assert meter.correct(estimate) == pytest.approx(1.35 * estimate + 9_000, rel=0.05)

    def test_a_swapped_model_drops_what_was_learnt(self) -> None:
        """A figure more than a quarter off a known line is a new beginning."""
        meter = Meter()
        feed(meter, (10_000, 22_500), (20_000, 36_000), (21_000, 21_000))
        assert meter.correct(21_000) == 21_000
        feed(meter, (30_000, 30_000))
        assert meter.correct(40_000) == 40_000

    def test_only_the_first_large_response_after_a_served_view_counts(self) -> None:
        """Helpers' smaller calls before it are passed over, and whatever follows is not ours."""
        meter = Meter()
        assert not meter.observe({"input_tokens": 10_000})
        meter.served(10_000)
        assert not meter.observe({"input_tokens": 5_999})
        assert meter.observe({"input_tokens": 12_000})
        assert not meter.observe({"input_tokens": 15_000})
        assert meter.correct(10_000) == 12_000

    def test_a_figure_that_tools_cannot_explain_changes_nothing(self) -> None:
        meter = Meter()
        meter.served(10_000)
        assert not meter.observe({"input_tokens": 118_001})
        assert meter.correct(10_000) == 10_000

    @pytest.mark.parametrize(
        ("observations", "expected"),
        [
            ([(10_000, 9_000)], (0, 18_000)),
            ([(10_000, 6_100)], (0, 14_000)),
            ([(10_000, 10_000), (20_000, 24_000)], (0, 22_667)),
            ([(10_000, 30_000), (14_000, 38_000)], (14_800, 46_800)),
        ],
    )
    def test_ratio_and_constant_stay_within_their_bounds(self, observations: Any, expected: tuple[int, int]) -> None:
        """A ratio of 0.7 to 1.6, and no negative constant."""
        meter = Meter()
        feed(meter, *observations)
        assert (meter.correct(0), meter.correct(20_000)) == expected

    @pytest.mark.parametrize("observations", [[], [(10_000, 15_000)], [(6_000, 17_100), (9_000, 21_150)]])
    def test_invert_is_an_estimate_that_fits(self, observations: list[tuple[int, int]]) -> None:
        """And leaves next to nothing over."""
        meter = Meter()
        feed(meter, *observations)
        for size in (meter.correct(0), meter.correct(0) + 7, 20_000, 200_001):
            assert size - 2 <= meter.correct(meter.invert(size)) <= size
        assert meter.invert(-5) == 0


class TestChains:
    """Providers that chain on their server report earlier requests too."""

    TOOLS = 9_000

    @staticmethod
    def told(meter: Meter, estimate: int, actual: int, *, may_chain: bool = True, system: int = 0) -> bool:
        meter.served(estimate, system=system, may_chain=may_chain)
        return meter.observe({"input_tokens": actual})

    @pytest.mark.parametrize("growth", [200, 1_000, 5_000])
    @pytest.mark.parametrize("tools", [0, TOOLS])
    def test_a_chain_does_not_move_the_measuring(self, growth: int, tools: int) -> None:
        """Each figure is the whole chain: what was sent in every request since its beginning."""
        meter, views = Meter(), [4_000 + growth * turn for turn in range(40)]
        assert self.told(meter, views[0], views[0] + tools, may_chain=False)
        for view, chain in zip(views[1:], list(accumulate(views))[1:], strict=True):
            assert not self.told(meter, view, chain + tools)
            assert meter.correct(view) == pytest.approx(view + tools, rel=0.01)

    def test_tools_are_learnt_from_the_second_figure_where_rows_carry_ids(self) -> None:
        """Their share stays as large as it is, and that of a chain does not."""
        meter = Meter()
        assert not self.told(meter, 6_000, 6_000 + self.TOOLS)
        assert self.told(meter, 6_300, 6_300 + self.TOOLS)
        assert meter.correct(6_500) == pytest.approx(6_500 + self.TOOLS, rel=0.02)

    def test_after_a_compaction_the_chain_is_cut_and_the_figure_counts(self) -> None:
        meter = Meter()
        assert self.told(meter, 5_000, 5_000, may_chain=False)
        assert not self.told(meter, 6_000, 11_000)
        assert self.told(meter, 3_000, 3_600, may_chain=False)
        assert meter.correct(3_000) == pytest.approx(3_600, rel=0.1)


class TestForegroundUsage:
    """A loop that knows which response was for the view says so itself."""

    def test_a_claimed_view_is_measured_by_its_recorder_alone(self) -> None:
        meter = Meter()
        meter.served(10_000)
        record = meter.claim()
        assert not meter.observe({"input_tokens": 17_000})
        assert record(input_tokens=9_000, cache_write_tokens=3_000)
        assert meter.correct(10_000) == 12_000
