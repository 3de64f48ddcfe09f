"""Parts: where a log is cut into the parts that are summarised, as a function of its rows and of a few integers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from context_summarize.core.context import context, rows_around
from context_summarize.core.log import Log, Rendering
from context_summarize.core.nodes import Length, Node, derive_summary_tokens, segment_key
from context_summarize.redaction import Redact
from context_summarize.transcript.groups import PartRow
from context_summarize.transcript.marks import renumber
from context_summarize.transcript.part import part_text, stable_length

_LEAST = 512
"""Tokens of the shortest segments, also in the smallest windows."""


def derive_segment_tokens(base: int) -> int:
    """Returns the power of two nearest (in log2, ties down) to base / 8, within 512…16,384."""
    exponent = math.log2(max(base, 1) / 8)
    nearest = math.ceil(exponent - 0.5)
    return int(min(16_384, max(_LEAST, 2**nearest)))


def is_too_long(segment_tokens: int, base: int) -> bool:
    """Returns True for segments that are too long for a base which has become smaller."""
    return segment_tokens > max(_LEAST, base / 4)


def next_end(groups: Iterable[tuple[int, bool]], segment_tokens: int) -> int | None:
    """Returns how many of these groups make the next segment; None while it is not closed.

    A segment ends at the first group boundary at or past `segment_tokens`. If a user turn begins within the next
    quarter of that length, it ends there instead. It is closed only once that turn or the whole quarter has come. So
    later groups never move the end, and one group at least stands behind it.

    Args:
        groups: for each rendered group its `stable_length` in bytes, and True for a user message.
    """
    size, total, cut, cut_total = segment_tokens * 4, 0, None, 0
    for at, (length, user) in enumerate(groups):
        if cut is not None and user:
            return at
        total += length
        if cut is not None and total - cut_total >= size // 4:
            return cut
        if cut is None and total >= size:
            cut, cut_total = at + 1, total
    return None


class Forced(NamedTuple):
    """A part that ends early: rendered groups [start, end), and the subject that its summary keeps above all."""

    start: int
    end: int
    focus: str | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """All that decides where parts end, apart from the rows."""

    lengths: tuple[Length, ...] = ()
    """The oldest first; empty until the first base is known."""
    forced: tuple[Forced, ...] = ()
    """The oldest first. Each begins where another part ends."""

    def length_at(self, group: int) -> Length:
        """Returns the length in force for a part that begins at this rendered group."""
        return next(length for length in reversed(self.lengths) if length.from_group <= group)

    def forced_at(self, group: int) -> Forced | None:
        """Returns the part that begins at this rendered group and ends early; None without one."""
        return next((part for part in self.forced if part.start == group), None)


class Parts:
    """The leaves of a log for one `Ends`, and the trees over them. They grow at their end as the log grows.

    A cache: the same log and ends always give the same leaves.

    Args:
        ends: with the length of the first part at least.
    """

    def __init__(self, log: Log, ends: Ends) -> None:
        self.log, self.ends = log, ends
        self.leaves: list[Node] = []
        self._digits: list[tuple[Node, ...]] = [()]
        """The digits of the tree after so many leaves."""
        while (leaf := log.leaves.get(self._place())) is not None:
            self._add(leaf)

    @property
    def end(self) -> int:
        """The rendered group at which the next leaf begins."""
        return self.leaves[-1].end_group if self.leaves else 0

    def _place(self) -> tuple[int, int, Forced | None]:
        """Returns all that decides what the next leaf is, apart from the rows."""
        return self.end, self.ends.length_at(self.end).segment_tokens, self.ends.forced_at(self.end)

    def _uncut(self) -> range:
        """Returns the closed rendered groups that are in no leaf yet."""
        return range(self.end, len(self.log.rendered))

    def backlog(self) -> int:
        """Returns about how many characters `render_ahead` must read."""
        length, readings = self.ends.lengths[-1].segment_tokens, self.log.readings
        first = next((at for at in self._uncut() if (at, length) not in readings), len(self.log.rendered))
        return self.log.characters_from(self.log.row_of(first))

    def render_ahead(self) -> None:
        """Renders the groups that have closed since the last time; a thread may do it."""
        for ordinal in self._uncut():
            self._rendering(ordinal, self.ends.lengths[-1].segment_tokens)
            self.log.hash_of(ordinal)  # a cut is saved under these hashes

    def _rendering(self, ordinal: int, length: int) -> Rendering:
        found = self.log.readings.get((ordinal, length))
        if found is None:
            rows = self.log.read(self.log.rendered_group(ordinal), self.log.redact_for_keys)
            found = self.log.readings[ordinal, length] = Rendering(rows, stable_length(rows, length))
        return found

    def take_in(self) -> None:
        """Cuts the groups that have closed since the last time into leaves."""
        while (leaf := self._next_leaf()) is not None:
            self._add(leaf)
        for place in [*self.log.readings]:  # a copy, because a thread may be adding to it
            if place[0] < self.end:
                self.log.readings.pop(place, None)

    def _next_leaf(self) -> Node | None:
        """Returns the next leaf; None while it is not closed."""
        first, length, forced = place = self._place()
        groups = self._uncut()
        if forced is not None:
            count = forced.end - first if forced.end <= groups.stop else None
        else:
            sizes = ((self._rendering(at, length).length, self.log.rows[self.log.row_of(at)].user) for at in groups)
            count = next_end(sizes, length)
        if count is None:
            return None
        found = self.log.leaves[place] = self._leaf(first, first + count, length, forced)
        return found

    def _leaf(self, first: int, end: int, length: int, forced: Forced | None) -> Node:
        groups = [self._rendering(at, length) for at in range(first, end)]
        tokens, focus = derive_summary_tokens(length), forced and forced.focus
        if forced is not None:
            tokens = _short_tokens(groups, tokens)
        leaf = Node("", 0, first, end, tokens, length, (), focus, forced is not None)
        text = _text(self.log, leaf, [row for group in groups for row in group.rows], self.log.redact_for_keys)
        return replace(leaf, key=segment_key(text, self.log.hashes[0], tokens, focus))

    def _add(self, leaf: Node) -> None:
        self.leaves.append(leaf)
        length = self.ends.length_at(leaf.first_group)
        self._digits.append(length.grown(self._digits[-1], leaf, self.log.hashes[1]))

    def count(self, until: int) -> int:
        """Returns how many leaves end at or before this rendered group."""
        return bisect_right(self.leaves, until, key=lambda leaf: leaf.end_group)

    def tree(self, until: int) -> tuple[Node, ...]:
        """Returns the nodes that represent the leaves before this rendered group, the oldest first."""
        count = self.count(until)
        return self.ends.lengths[-1].capped(self._digits[count], self.log.hashes[1])

    def is_long_enough(self, start: int, end: int) -> bool:
        """Returns True if these rendered groups may become a part that ends early: a summary makes them shorter."""
        length = self.ends.length_at(start)
        groups = [self._rendering(at, length.segment_tokens) for at in range(start, end)]
        return sum(group.length for group in groups) // 4 >= 2 * _short_tokens(groups, length.summary_tokens)


def _short_tokens(groups: Iterable[Rendering], tokens: int) -> int:
    """Returns the length of the summary of a part that ends early."""
    return min(tokens, max(48, sum(group.length for group in groups) // 16))


def parts_of(log: Log, ends: Ends) -> Parts:
    """Returns the parts of a log for these ends, from the log's cache."""
    found = log.parts.get(ends)
    if found is None:
        found = Parts(log, ends)
        log.parts = {**dict([*log.parts.items()][-2:]), ends: found}
    return found


def source(log: Log, node: Node) -> str:
    """Returns the text that a level-0 node represents, as its summariser reads it.

    The key is made without the user's own patterns, so that no key depends on how quickly they search a text.
    """
    groups = map(log.rendered_group, range(node.first_group, node.end_group))
    rows = [row for group in groups for row in log.read(group, log.redact)]
    return _text(log, node, rows, log.redact)


def _text(log: Log, node: Node, rows: Sequence[PartRow], redact: Redact | None) -> str:
    around = _around(log, node)
    return part_text(rows, node.segment_tokens, *context(log, around, node.segment_tokens, redact))


def _around(log: Log, node: Node) -> tuple[list[int], list[int]]:
    return rows_around(log, node.first_group, None if node.ends_early else node.end_group)


def numbered_from(log: Log, node: Node, text: str, merge: Node | None = None) -> str:
    """Returns the text of a node with the marks of the session, or with those of a merge, for its summariser."""
    start, end = log.message_range(node.first_group, node.end_group)
    first, outside = 1, list[int | None]()
    if merge is not None:
        first, outside = log.message_range(merge.first_group, merge.end_group)[0], _numbers_around(log, merge)

    def marked(number: int | None) -> str:
        if number is None:
            return ""
        return f"b{outside.index(number) + 1}" if number in outside else f"m{number - first + 1}"

    return renumber(text, start - first + 1, end - start + 1, [*map(marked, _numbers_around(log, node))])


def _numbers_around(log: Log, node: Node) -> list[int | None]:
    """Returns the messages around a part, `b1` first; for a merge those around its parts that are not in it."""
    if not node.children:
        return [log.number_of(row) for row in chain(*_around(log, node))]
    first, last = log.message_range(node.first_group, node.end_group)
    found = {number for child in node.children for number in _numbers_around(log, child)}
    return [*sorted(number for number in found if number and not first <= number <= last)]
