"""Places of secrets: put in order, replaced by marks, and found again behind the marks of earlier ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.redaction.marks import mark
from context_summarize.redaction.spans import Span, added, in_order, replaced

TEXT = "".join(chr(0x4E00 + at) for at in range(60))
"""Characters that differ, so that each tells where it stands."""
KINDS = ("JWT", "password", "access token")


def spans_within(length: int) -> st.SearchStrategy[list[Span]]:
    """A few spans of a text of this length, in any order; they may overlap."""
    ends = st.lists(st.integers(0, length), min_size=2, max_size=2, unique=True).map(sorted)
    one = st.builds(lambda ends, kind: Span(ends[0], ends[1], kind), ends, st.sampled_from(KINDS))
    return st.lists(one, max_size=5)


def places(spans: list[Span]) -> set[int]:
    return {at for span in spans for at in range(span.first, span.end)}


def behind(spans: list[Span]) -> list[set[int]]:
    """For each character of the text with marks: the places of the text that it stands for."""
    by_first = {span.first: span for span in spans}
    out: list[set[int]] = []
    at = 0
    while at < len(TEXT):
        span = by_first.get(at, Span(at, at + 1, ""))
        out += [places([span])] * (len(mark(span.kind)) if at in by_first else 1)
        at = span.end
    return out


@given(spans_within(len(TEXT)))
def test_spans_in_order_cover_the_same_places_and_do_not_overlap(spans: list[Span]) -> None:
    ordered = in_order(spans)

    assert places(ordered) == places(spans)
    assert all(one.end <= other.first for one, other in pairwise(ordered))
    assert in_order(ordered) == ordered


@given(spans_within(len(TEXT)))
def test_what_stands_outside_the_spans_stays_and_each_span_becomes_one_mark(spans: list[Span]) -> None:
    ordered = in_order(spans)
    clean = replaced(TEXT, ordered)

    assert [char for char in clean if char in TEXT] == [TEXT[at] for at in range(60) if at not in places(spans)]
    assert len(clean) == 60 - len(places(spans)) + sum(len(mark(span.kind)) for span in ordered)


@given(st.data())
def test_what_is_found_behind_marks_is_found_in_the_text_itself(data: st.DataObject) -> None:
    """A place that overlaps a mark takes in all that the mark stands for; a place between marks is as wide as found."""
    spans = in_order(data.draw(spans_within(len(TEXT))))
    clean = replaced(TEXT, spans)
    found = data.draw(spans_within(len(clean)))
    stands_for = behind(spans)
    assert len(stands_for) == len(clean)

    both = added(spans, found)

    assert places(both) == places(spans).union(*(stands_for[at] for at in places(found)))
    assert both == in_order(both)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((2, 4), [(2, 4), (4, 6)]),
        ((2, 5), [(2, 6)]),
        ((10, 12), [(4, 6)]),
        ((18, 21), [(4, 8)]),
        ((19, 21), [(4, 6), (6, 8)]),
        ((2, 21), [(2, 8)]),
    ],
    ids=["ends at it", "begins before it", "within it", "ends after it", "begins at its end", "around it"],
)
def test_what_overlaps_a_mark_becomes_one_span_with_it(found: tuple[int, int], expected: list[tuple[int, int]]) -> None:
    """And not what only touches it: each is a secret of its own."""
    spans = [Span(4, 6, "JWT")]
    assert replaced("0123--6789", spans) == "0123[redacted: JWT]6789"

    both = added(spans, [Span(*found, "password")])

    assert [(span.first, span.end) for span in both] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([Span(0, 4, "JWT"), Span(4, 8, "password")], [Span(0, 4, "JWT"), Span(4, 8, "password")]),
        ([Span(0, 4, "JWT"), Span(3, 9, "password")], [Span(0, 9, "password")]),
        ([Span(0, 6, "JWT"), Span(3, 8, "password")], [Span(0, 8, "JWT")]),
        ([Span(2, 6, "JWT"), Span(2, 9, "password"), Span(4, 5, "AWS key")], [Span(2, 9, "password")]),
        ([Span(5, 10, "JWT"), Span(8, 13, "password")], [Span(5, 13, "JWT")]),
    ],
    ids=["they touch", "the later is longer", "the earlier is longer", "one within another", "equally long"],
)
def test_spans_that_overlap_become_one_of_the_kind_of_the_longer_one(given: list[Span], expected: list[Span]) -> None:
    assert in_order(given) == in_order(reversed(given)) == expected
