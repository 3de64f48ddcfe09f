"""Finds runs of groups again in another history by what they hold. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from context_summarize.core.history import SPAN_BYTES, History
from context_summarize.core.nodes import Span

Run = tuple[int, Span]
"""Where a run of groups stood, and what it held."""


def places_of(history: History) -> Mapping[str, Sequence[int]]:
    """The rendered groups of each hash."""
    found: dict[str, list[int]] = {}
    for ordinal in range(len(history.rendered)):
        found.setdefault(history.hash_of(ordinal), []).append(ordinal)
    return found


def nearest(places: Mapping[str, Sequence[int]], hash_: str, wanted: int) -> int | None:
    """The rendered group of this hash that is nearest to the wanted place; None without one."""
    return min(places.get(hash_, ()), key=lambda at: abs(at - wanted), default=None)


def pins_in(history: History, pins: Sequence[tuple[int, str]], by: int = 0) -> tuple[int, ...]:
    """The pinned groups (rendered group, hash) in this history, in order; those that are gone or changed are left out.

    Args:
        by: how far groups have moved, for a group whose equal stands elsewhere.
    """
    places = places_of(history) if pins else {}
    found = (nearest(places, hash_, ordinal + by) for ordinal, hash_ in pins)
    return tuple(sorted({at for at in found if at is not None}))


def found_again(runs: Sequence[Run], history: History) -> list[int | None]:
    """The rendered group at which each run begins in this history; None where it is gone or changed.

    The order is kept: runs that occur once lead, and the others follow their neighbours by their distance.

    Args:
        runs: in the order of the other history.
    """
    found = _increasing(_only_places(runs, history))
    for step in (1, -1):
        shift = 0 if step == 1 else None
        for at in range(len(runs))[::step]:
            old, span = runs[at]
            guess = None if shift is None else old + shift
            if found[at] is None and guess is not None and _is_at(history, span, guess):
                found[at] = guess if _keeps_order(found, at, guess) else None
            place = found[at]
            shift = shift if place is None else place - old
    return found


def _is_at(history: History, span: Span, place: int) -> bool:
    return span.groups > 0 and history.span(place, place + span.groups) == span


def _keeps_order(found: Sequence[int | None], at: int, place: int) -> bool:
    before = next((other for other in reversed(found[:at]) if other is not None), place)
    after = next((other for other in found[at + 1 :] if other is not None), place)
    return before <= place <= after


def _only_places(runs: Sequence[Run], history: History) -> list[int | None]:
    """Where each run stands that begins with a group which the history holds once."""
    starts: dict[str, int] = {}
    for ordinal in range(len(history.rendered)):
        first = history.hash_of(ordinal)[: 2 * SPAN_BYTES]
        starts[first] = -1 if first in starts else ordinal
    places = (starts.get(span.first, -1) for _, span in runs)
    return [place if _is_at(history, span, place) else None for place, (_, span) in zip(places, runs, strict=True)]


def _increasing(places: Sequence[int | None]) -> list[int | None]:
    """As many of the places as stand in order: the longest run that never falls; None for the others."""
    ends: list[int] = []
    """Place in `places` of the last one of the best run of each length."""
    before: dict[int, int] = {}
    for at, place in enumerate(places):
        if place is None:
            continue
        # Runs that begin at the same group may follow each other: a rest and the segment that replaces it.
        length = bisect_left(ends, place + 1, key=lambda other: places[other] or 0)
        if length:
            before[at] = ends[length - 1]
        ends[length : length + 1] = [at]
    kept: list[int | None] = [None] * len(places)
    at_end = ends[-1] if ends else -1
    while at_end >= 0:
        kept[at_end] = places[at_end]
        at_end = before.get(at_end, -1)
    return kept
