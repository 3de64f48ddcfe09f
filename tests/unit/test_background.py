"""Work in steps: what a stepped search finds, and how often it tries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.background import Steps, fewest, finished


@given(st.integers(0, 300), st.integers(0, 400))
def test_a_search_finds_what_a_scan_from_the_first_number_on_finds(most: int, enough: int) -> None:
    tried: list[int] = []

    def is_enough(number: int) -> Steps[bool]:
        tried.append(number)
        yield
        return number >= enough

    scanned = next((number for number in range(most) if number >= enough), most)
    assert finished(fewest(most, is_enough)) == scanned
    assert len(tried) <= most.bit_length()
    assert all(number < most for number in tried)


def test_a_search_yields_with_every_number_it_tries() -> None:
    tried: list[int] = []

    def is_enough(number: int) -> Steps[bool]:
        tried.append(number)
        yield
        return number >= 70

    assert len(list(fewest(100, is_enough))) == len(tried) > 1
