"""Counting text with the bundled encoding, and the meter that the provider's figures correct."""

from __future__ import annotations

import pytest

from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    made = TokenCounter()
    made.count("")
    return made


@pytest.mark.parametrize("text", ["some words of a line\n" * 4_000, "some words " * 8_000, "e5,2;" * 20_000])
def test_a_long_text_counts_as_the_whole_would(text, counter):
    """Pieces add up to within half a percent of the uncut text, with newlines, blanks or neither to cut at."""
    assert counter._encoding is not None
    whole = len(counter._encoding.encode_ordinary(text))
    assert counter.count(text) == pytest.approx(whole, rel=0.005)


@pytest.mark.parametrize(("text", "expected"), [("a" * 1_000_000, 125_000), (" " * 1_000_000, 7_813)])
def test_a_megabyte_of_one_character_counts(text, expected, counter):
    """tiktoken alone overflows its stack on the blanks, and older versions take minutes for the letters."""
    assert counter.count(text) == expected


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
