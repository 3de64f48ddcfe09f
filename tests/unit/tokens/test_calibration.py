"""The meter that the provider's figures correct."""

from __future__ import annotations

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

    def test_only_the_first_plausible_response_after_a_served_view_counts(self) -> None:
        """Helpers' calls before it are passed over, and whatever follows is not ours."""
        meter = Meter()
        assert not meter.observe({"input_tokens": 10_000})
        meter.served(10_000)
        assert not meter.observe({"input_tokens": 5_999})
        assert not meter.observe({"input_tokens": 118_001})
        assert meter.observe({"input_tokens": 12_000})
        assert not meter.observe({"input_tokens": 15_000})
        assert meter.correct(10_000) == 12_000

    @pytest.mark.parametrize("actual", [6_000, 118_000])
    def test_the_bounds_are_plausible(self, actual: int) -> None:
        """0.6 times the estimate, and 1.8 times and 100,000 for tools."""
        feed(Meter(), (10_000, actual))

    def test_cache_writes_are_added_and_cache_reads_are_not(self) -> None:
        """input_tokens holds the cache reads in some hosts."""
        meter = Meter()
        meter.served(10_000)
        assert meter.observe({"input_tokens": 4_000, "cache_write_tokens": 7_000, "cache_read_tokens": 50_000})
        assert meter.correct(10_000) == 11_000

    @pytest.mark.parametrize("odd", [None, -5_000, True, 12_000.0, "12000"])
    def test_odd_figures_count_as_nought(self, odd: object) -> None:
        """A figure that is no whole number, or negative, is as good as missing."""
        meter = Meter()
        meter.served(1)
        assert not meter.observe({"input_tokens": odd})
        assert meter.observe({"input_tokens": odd, "cache_write_tokens": 1})

    @pytest.mark.parametrize("usage", [{}, {"input_tokens": 0}])
    def test_an_empty_usage_is_never_taken(self, usage: dict[str, Any]) -> None:
        """Not even for an empty view."""
        meter = Meter()
        meter.served(0)
        assert not meter.observe(usage)

    def test_small_views_are_taken_too(self) -> None:
        """A short session's request is mostly tools: a constant."""
        meter = Meter()
        feed(meter, (0, 9_000))
        assert meter.correct(100) == 9_100
        feed(meter, (100, 9_110))
        assert meter.correct(100) == pytest.approx(9_110, abs=5)

    @pytest.mark.parametrize("estimates", [(6_000, 8_000, 11_000), (10_000, 10_500, 14_000), (3_000, 12_000, 30_000)])
    def test_three_growing_views_give_ratio_and_constant(self, estimates: tuple[int, ...]) -> None:
        """1.35 times the estimate and 9,000 of tools are found to within 5 % between 3k and 30k."""
        meter = Meter()
        feed(meter, *[(e, round(1.35 * e + 9_000)) for e in estimates])
        for estimate in range(3_000, 30_001, 1_000):
            assert meter.correct(estimate) == pytest.approx(1.35 * estimate + 9_000, rel=0.05)

    def test_views_of_one_size_change_the_constant_alone(self) -> None:
        """Without a difference there is no telling the ratio: the newest residual is the constant."""
        meter = Meter()
        feed(meter, (10_000, 13_000), (11_000, 14_200))
        assert meter.correct(20_000) == 23_200

    def test_a_figure_below_the_estimate_changes_the_ratio(self) -> None:
        """A negative constant makes no sense, so the ratio gives way, down to 0.7."""
        meter = Meter()
        feed(meter, (10_000, 9_000))
        assert (meter.correct(0), meter.correct(20_000)) == (0, 18_000)
        meter.reset()
        feed(meter, (10_000, 6_100))
        assert meter.correct(10_000) == 7_000

    def test_a_line_below_the_origin_goes_through_it(self) -> None:
        """The same for a fitted line."""
        meter = Meter()
        feed(meter, (10_000, 10_000), (20_000, 24_000))
        assert meter.correct(0) == 0
        assert meter.correct(10_000) == pytest.approx(11_600, abs=1)

    def test_the_ratio_stays_within_its_bounds(self) -> None:
        """A slope above 1.6 or below 0.7 is noise; the constant covers the rest."""
        meter = Meter()
        feed(meter, (10_000, 20_000), (20_000, 20_500))
        assert meter.correct(20_000) - meter.correct(10_000) == 7_000
        meter.reset()
        feed(meter, (10_000, 30_000), (14_000, 38_000))
        assert meter.correct(20_000) - meter.correct(10_000) == 16_000

    def test_a_swapped_model_drops_what_was_learnt(self) -> None:
        """A figure more than a quarter off a known line is a new beginning."""
        meter = Meter()
        feed(meter, (10_000, 22_500), (20_000, 36_000), (21_000, 21_000))
        assert meter.correct(21_000) == 21_000
        feed(meter, (30_000, 30_000))
        assert meter.correct(40_000) == 40_000

    def test_a_swap_is_seen_between_views_of_one_size(self) -> None:
        """The second figure replaces the first instead of being averaged with it."""
        meter = Meter()
        feed(meter, (10_000, 10_000), (10_000, 15_000))
        assert meter.correct(10_000) == 15_000

    def test_a_swap_is_seen_before_there_was_a_line(self) -> None:
        """A line that would have to be too steep for one model is none."""
        meter = Meter()
        feed(meter, (10_000, 11_000), (15_000, 60_000))
        assert meter.correct(15_000) == 60_000
        feed(meter, (20_000, 65_000))
        assert meter.correct(30_000) == 75_000

    def test_only_the_last_eight_observations_are_kept(self) -> None:
        """Old ones leave, so that a slow change is followed: after eight of another line it is that line."""
        meter = Meter()
        feed(meter, *[(10_000 + n * 1_000, 12_000 + n * 1_000) for n in range(12)])
        feed(meter, *[(22_000 + n * 1_000, 23_000 + n * 1_000) for n in range(7)])
        assert meter.correct(40_000) != 41_000
        feed(meter, (29_000, 30_000))
        assert meter.correct(40_000) == 41_000

    def test_reset_forgets_everything(self) -> None:
        """The served view as well."""
        meter = Meter()
        feed(meter, (10_000, 15_000))
        meter.served(10_000)
        meter.reset()
        assert meter.correct(10_000) == 10_000
        assert not meter.observe({"input_tokens": 10_000})

    @pytest.mark.parametrize(
        "observations", [[], [(10_000, 15_000)], [(10_000, 7_100)], [(6_000, 17_100), (9_000, 21_150)]]
    )
    def test_invert_is_the_largest_estimate_that_fits(self, observations: list[tuple[int, int]]) -> None:
        """Its corrected size is within the tokens, and that of the next one is not."""
        meter = Meter()
        feed(meter, *observations)
        for size in [*range(meter.correct(0), meter.correct(0) + 50), 20_000, 200_001]:
            estimate = meter.invert(size)
            assert meter.correct(estimate) <= size < meter.correct(estimate + 1)
        assert meter.invert(meter.correct(0) - 1) == meter.invert(-5) == 0

    @pytest.mark.parametrize("budget", [10**6, 2**53 + 1, 10**30])
    def test_any_budget_is_inverted_at_once(self, no_hang: None, budget: int) -> None:
        """Also one that no float holds exactly: the largest estimate that fits is found by halving."""
        meter = Meter()
        feed(meter, (10_000, 13_000), (20_000, 25_000))
        estimate = meter.invert(budget)
        assert meter.correct(estimate) <= budget < meter.correct(estimate + max(1, estimate // 1_000_000))
