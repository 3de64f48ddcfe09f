"""Counting text with the bundled encoding, and the meter that the provider's figures correct."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from context_summarize.testing import measure
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import input_tokens


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    made = TokenCounter()
    made.count("")
    return made


def test_a_text_without_a_blank_counts_as_the_whole_would(counter):
    """Its pieces add up to within half a percent."""
    assert counter.count("e5,2;" * 20_000) == pytest.approx(200 * counter.count("e5,2;" * 100), rel=0.005)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 1_000_000, 125_000),
        ("words\n" * 1_000 + " " * 3_900_000, 32_471),
        (" " * 12_000_000, pytest.approx(93_750, rel=0.01)),
    ],
)
def test_megabytes_of_one_character_count(text, expected, counter):
    """tiktoken alone overflows its stack on blanks, and older versions take minutes for letters.

    What no window has room for is estimated.
    """
    assert counter.count(text) == expected


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}}


TWO = pytest.approx(2 * 1_092 * 1_092 / 750, rel=0.02)
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [IMAGE, IMAGE]}


@pytest.mark.parametrize(("content", "expected"), [("", 3), ([IMAGE, IMAGE], TWO), ([RESULT], TWO)])
def test_a_row_counts_as_openai_wraps_messages_and_an_image_as_the_largest_that_anthropic_takes(content, expected):
    assert measure({"role": "user", "content": content}) == expected


@pytest.mark.parametrize(
    ("figures", "read"),
    [
        ({"input_tokens": 0, "cache_write_tokens": 900}, 900),
        ({"input_tokens": 10, "cache_write_tokens": 90, "cache_read_tokens": 800}, 900),
        ({"input_tokens": 900, "cache_read_tokens": 800}, 900),
        ({"input_tokens": "many", "cache_write_tokens": -5}, 0),
    ],
)
def test_what_a_provider_caches_was_read_as_well(figures, read):
    """Anthropic counts it beside the input; where the input includes what was read from the cache, it counts once."""
    assert input_tokens(SimpleNamespace(**figures)) == read


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
