"""The meter that the provider's figures correct."""

from __future__ import annotations

import pytest

from context_summarize.tokens.calibration import Meter


def fed(*observations: tuple[int, int]) -> Meter:
    """A meter that has heard of these estimates what they were."""
    meter = Meter()
    for estimate, actual in observations:
        meter.served(estimate)
        assert meter.observe({"input_tokens": actual})
    return meter


SWAPPED = [(10_000, 22_500), (20_000, 36_000), (21_000, 21_000)]
"""A figure more than a quarter off a known line is another model: what was learnt is dropped."""


@pytest.mark.parametrize(
    ("observations", "expected"),
    [
        ([(10_000, 9_000)], {0: 0, 20_000: 18_000}),
        ([(10_000, 6_100)], {0: 0, 20_000: 14_000}),
        ([(10_000, 10_000), (20_000, 24_000)], {0: 0, 20_000: 22_667}),
        ([(10_000, 30_000), (14_000, 38_000)], {0: 14_800, 20_000: 46_800}),
        (SWAPPED, {21_000: 21_000}),
        ([*SWAPPED, (30_000, 30_000)], {40_000: 40_000}),
    ],
)
def test_ratio_and_constant_stay_within_their_bounds(observations, expected):
    """A ratio of 0.7 to 1.6, and no negative constant."""
    meter = fed(*observations)
    assert {estimate: meter.correct(estimate) for estimate in expected} == expected


@pytest.mark.parametrize("observations", [[], [(10_000, 15_000)], [(6_000, 17_100), (9_000, 21_150)]])
def test_invert_is_an_estimate_that_fits(observations):
    """And leaves next to nothing over."""
    meter = fed(*observations)
    for size in (meter.correct(0), meter.correct(0) + 7, 20_000, 200_001):
        assert size - 2 <= meter.correct(meter.invert(size)) <= size
    assert meter.invert(-5) == 0
