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
    """A sixteenth of a segment, within 64…1,600 tokens."""
    return min(1_600, max(64, segment_tokens // 16))


class Segmenter:
    """Cuts rendered groups, fed one at a time, into segments. What is cut stays cut, whatever is fed later.

    A segment takes three to five quarters of `segment_tokens`. Among the groups that stand in there, the next segment
    begins with a user message if there is one, and with that of the lowest hash if there are several: so the cuts
    behind an edit soon fall where they fell before, and the summaries of those segments are found again.
    """

    def __init__(self, segment_tokens: int, summary_tokens: int, *, first_group: int = 0, first_index: int = 0) -> None:
        self.segment_tokens = segment_tokens
        self.summary_tokens = summary_tokens
        self._start = first_group
        self._index = first_index
        self._fed: list[tuple[int, bool, str]] = []
        self._total = 0
        self._best: tuple[bool, str, int] | None = None
        """(is no user message, hash, position) of the group with which the next segment begins."""

    @property
    def start(self) -> int:
        """First rendered group that is in no closed segment yet."""
        return self._start

    @property
    def next_group(self) -> int:
        """The rendered group that must be fed next."""
        return self._start + len(self._fed)

    def feed(self, length: int, user: bool, hash_: str) -> list[Segment]:
        """Feed the next group: its `cut_length` in bytes, whether it is a user message, and its hash."""
        quarter = self.segment_tokens  # in bytes: four of them make a token
        if self._total >= 3 * quarter:
            here = (not user, hash_, len(self._fed))
            self._best = min(self._best or here, here)
        self._fed.append((length, user, hash_))
        self._total += length
        return self._close() if self._total > 5 * quarter else []

    def _close(self) -> list[Segment]:
        cut = self._best[2] if self._best else len(self._fed)
        segment = Segment(self._index, self._start, self._start + cut, self.segment_tokens, self.summary_tokens)
        rest = self._fed[cut:]
        self._index += 1
        self._start += cut
        self._fed, self._total, self._best = [], 0, None
        out = [segment]
        for group in rest:
            out += self.feed(*group)
        return out
