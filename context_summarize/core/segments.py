"""Segments: runs of closed groups that are summarised by one call."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed run of rendered groups."""

    index: int
    first_group: int
    end_group: int
    """Groups [first_group, end_group), counted over rendered groups."""
    segment_tokens: int
    summary_tokens: int
    """The sizes in force when the segment was cut."""


def derive_segment_tokens(budget: int) -> int:
    """The power of two nearest (in log2, ties down) to budget / 8, within 512…16,384."""
    exponent = math.log2(max(budget, 1) / 8)
    nearest = math.ceil(exponent - 0.5)
    return int(min(16_384, max(512, 2**nearest)))


def derive_summary_tokens(segment_tokens: int) -> int:
    """A sixteenth of a segment, within 64…1,600 tokens; at most half of the segment."""
    return min(1_600, max(64, segment_tokens // 16), segment_tokens // 2)


class Segmenter:
    """Cuts rendered groups, fed one at a time, into segments. What is cut stays cut, whatever is fed later.

    A segment closes at the first group boundary at or past `segment_tokens`, or at the first user turn within the
    next quarter of that length; it is closed only once that turn, or the whole quarter, stands behind it.
    """

    def __init__(self, segment_tokens: int, summary_tokens: int, *, first_group: int = 0, first_index: int = 0) -> None:
        self.segment_tokens = segment_tokens
        self.summary_tokens = summary_tokens
        self._start = first_group
        self._index = first_index
        self._fed: list[tuple[int, bool]] = []
        self._total = 0
        self._cut: int | None = None
        self._cut_total = 0

    @property
    def start(self) -> int:
        """First rendered group that is in no closed segment yet."""
        return self._start

    @property
    def next_group(self) -> int:
        """The rendered group that must be fed next."""
        return self._start + len(self._fed)

    def feed(self, length: int, user: bool) -> list[Segment]:
        """Feed the next group: its `cut_length` in bytes, and whether it is a user message."""
        self._fed.append((length, user))
        size = self.segment_tokens * 4
        if self._cut is None:
            self._total += length
            if self._total >= size:
                self._cut, self._cut_total = len(self._fed), self._total
            return []
        if user:
            return self._close(len(self._fed) - 1)
        self._total += length
        if self._total - self._cut_total >= size // 4:
            return self._close(self._cut)
        return []

    def _close(self, cut: int) -> list[Segment]:
        segment = Segment(self._index, self._start, self._start + cut, self.segment_tokens, self.summary_tokens)
        rest = self._fed[cut:]
        self._index += 1
        self._start += cut
        self._fed, self._total, self._cut = [], 0, None
        out = [segment]
        for length, user in rest:
            out += self.feed(length, user)
        return out
