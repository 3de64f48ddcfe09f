"""A cut under construction: each step shortens or summarises more. `plan.py` says which steps are taken. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from context_summarize.core.cut import Cut, Shortening
from context_summarize.core.entries import HARD_FLOOR, Entry, short_length
from context_summarize.core.frames import summary_entry
from context_summarize.core.limits import Limits
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary, with_children
from context_summarize.core.parts import Forced, parts_of
from context_summarize.core.view import Rows, TextOf, View, first_row, nodes_of, texts_of, top_rows
from context_summarize.redaction import withholds

Reason = Literal["threshold", "manual", "must_fit"]
"""Why a compaction is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that a plan is made from. Planning changes nothing in it."""

    log: Log
    cut: Cut
    """The cut in force, with the ends of parts for the present base."""
    shown: View
    """The view in force."""
    limits: Limits
    text_of: TextOf
    """Returns the text that a new cut would show for a node; None while none is known."""
    hides_system: bool = False

    @property
    def thread(self) -> int:
        """Tokens of the thread in force."""
        return self.shown.thread.tokens if self.shown.thread else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compaction before it is made. Sizes are without the system prompt."""

    reason: Reason
    cut: Cut
    tokens_before: int
    tokens_after: int
    """The thread's room counts as filled."""
    freed: int
    """Tokens that the compaction saves, as if the thread filled its room before as it does after."""
    missing: tuple[Node, ...]
    """The nodes whose text is not known."""
    segments: int
    """Parts that are summarised."""
    merged: int
    level: int
    """The last step that it takes: 1 summarise, 2 end a part early, 3 halve `keep_recent`, 4 cut any row, 5 one line
    for all summaries."""
    fits: bool


class Draft:
    """A cut under construction. It begins with the cut in force; each step makes its view smaller, and a little worse.

    Args:
        known_only: True to summarise only as far as texts are known.
    """

    def __init__(self, given: PlanInput, *, known_only: bool = False) -> None:
        self._given, self._known_only = given, known_only
        self._log, self._limits, before = given.log, given.limits, given.cut
        self._parts = parts_of(self._log, before.ends)
        self._parts.take_in()
        self._before = given.shown.tokens
        """Tokens of the view in force: the sum of all its rows, asked for at each step."""
        self.has_thread = True
        """False if the view has no room for the thread."""
        self.level = 1
        """The last step taken; see `Plan.level`."""
        self.cut = replace(
            before,
            rows=self._log.rendered_rows,
            keep_recent=self._limits.keep_recent,
            shortened=(),
            is_bare=False,
            thread_room=0,
            pinned=before.pins,
            changed_at=0,
            unsent_at=0,
        )
        self._groups = self._log.from_row(min(first_row(self._log, before), first_row(self._log, self.cut)))
        """Those of the present verbatim part, and the system rows before it that a larger `keep_recent` shows."""
        self._sizes: list[int] = []
        """Tokens of the newest 0, 1, 2, … of these; empty until a size is asked for."""

    def _shorten(self, rule: Shortening) -> None:
        """Cuts rows by this rule too."""
        self.cut = replace(self.cut, shortened=(*self.cut.shortened, rule))
        self._sizes = []

    def _rows(self) -> Rows:
        return Rows(self._log, self.cut, hides_system=self._given.hides_system)

    def size(self) -> int:
        """Returns the tokens of the view, without the system prompt."""
        size = self._size()
        return size + self._thread_room(size)

    def fits(self) -> bool:
        """Returns True if the view fits the budget."""
        return self.size() <= self._limits.view_room

    def _thread_room(self, size: int) -> int:
        """Returns the tokens that the thread may take: those that it may take now, and half of what this cut frees.

        If only the half counted, cut after cut without new rows would wear it away.
        """
        if not (self.has_thread and self.cut.groups):
            return 0
        given = self._given
        freed = self._before - given.thread - size
        return max(0, min(self._limits.notes_room, given.cut.thread_room + freed // 2))

    def _size(self) -> int:
        """Returns the tokens of the view without its thread."""
        rows, nodes = self._rows(), nodes_of(self._log, self.cut)
        texts = texts_of(nodes, self._given.text_of)
        missing = () if self.cut.is_bare else (node for node in nodes if node not in texts)
        if not self._sizes:
            sizes = (_tokens(rows.of(group)) for group in reversed(self._groups))
            self._sizes = [*accumulate(sizes, initial=0)]
        gone = bisect_left(self._groups, rows.first, key=lambda group: group.start)
        top = _tokens(top_rows(rows, rows.beside(), texts))
        return top + sum(map(self._estimated, missing)) + self._sizes[len(self._groups) - gone]

    def _estimated(self, node: Node) -> int:
        """Returns about how many tokens the row of a missing summary takes: its frame, and the length asked for."""
        frame = Summary(node.key, node.level, text="", tokens=0, source_tokens=0)
        return summary_entry(self._log, node, frame).tokens + node.summary_tokens

    def _missing(self, cut: Cut) -> tuple[Node, ...]:
        """Returns the nodes of a cut whose texts are not known."""
        nodes = () if cut.is_bare else nodes_of(self._log, cut)
        return tuple(node for node in nodes if self._given.text_of(node) is None)

    def summarise(self, keep_recent: int, goal: int) -> None:
        """Summarises the oldest parts until the view takes no more than `goal` tokens."""
        limit = self._log.summarisable(keep_recent)
        for leaf in self._parts.leaves[self._parts.count(self.cut.groups) :]:
            if leaf.end_group > limit or self.size() <= goal:
                break
            longer = replace(self.cut, groups=leaf.end_group)
            if not (self._known_only and self._missing(longer)):
                self.cut = longer

    def end_early(self, keep_recent: int, focus: str | None = None) -> None:
        """Summarises the rows between the last closed part and the newest rows, as a part that ends early."""
        log, cut = self._log, self.cut
        end = log.summarisable(keep_recent)
        if end <= cut.groups or not self._parts.is_long_enough(cut.groups, end):
            return
        focus = log.redact(focus) if focus and log.redact else focus
        focus = None if withholds(log.redact) else focus
        forced = (*(part for part in cut.ends.forced if part.end <= cut.groups), Forced(cut.groups, end, focus))
        self.cut = replace(cut, groups=end, ends=replace(cut.ends, forced=forced))
        self.level = max(self.level, 2)

    def shorten_results(self) -> None:
        """Cuts results above `shorten_above` tokens, except those among the newest `keep_recent` rows."""
        longest = self._limits.shorten_above
        until = self._log.numbered(len(self._log) - self._limits.keep_recent - 1)
        if longest is not None and until > 0:
            self._shorten(Shortening(until, longest, short_length(longest)))

    def shorten_newest_results(self) -> None:
        """Cuts the longest results, also among the newest rows but not in the last group, down to `most_left`."""
        longest, above = self._limits.shorten_newest_above, self._limits.shorten_above
        until = self._log.numbered(self._log.row_of(self._log.summarisable(0)) - 1)
        if longest is None or above is None or until <= 0:
            return

        def may_cut(rows: Rows, row: int, tokens: int) -> bool:
            return tokens > longest and rows.is_result(row) and self._log.numbered(row) <= until

        length = max(short_length(above), self._length(self._limits.most_left, may_cut))
        self._shorten(Shortening(until, max(longest, length), length))

    def shorten_longest(self) -> None:
        """Cuts all rows above one length to that length; if the view still does not fit, as far as rows are cut."""
        length = self._length(self._limits.view_room, lambda rows, row, _: not rows.is_instruction(row))
        for most in (max(HARD_FLOOR, length), HARD_FLOOR):
            self._shorten(Shortening(self._log.rendered_rows, most, most, only_results=False))
            if self.fits():
                break

    def _length(self, room: int, may_cut: Callable[[Rows, int, int], bool]) -> int:
        """Returns the length to which rows must be cut for the view to take so many tokens.

        Args:
            may_cut: returns True for a row, of so many tokens, that may be cut.
        """
        rows = self._rows()
        groups = (*rows.beside(), *self._log.from_row(rows.first))
        shown = [(entry.origin, entry.tokens) for group in groups for entry in rows.of(group)]
        sizes = [tokens for row, tokens in shown if row is not None and may_cut(rows, row, tokens)]
        return _water_level(sizes, room - self.size() + sum(sizes))

    def plan(self, reason: Reason) -> Plan:
        """Returns the finished plan."""
        given, size = self._given, self._size()
        room = self._thread_room(size)
        old = {*with_children(nodes_of(self._log, given.cut))}
        nodes = nodes_of(self._log, self.cut)
        new = [node for node in with_children(nodes) if node not in old]
        return Plan(
            reason=reason,
            cut=replace(self.cut, thread_room=room),
            tokens_before=self._before,
            tokens_after=size + room,
            freed=self._before + given.cut.thread_room - given.thread - size - room,
            missing=self._missing(self.cut),
            segments=sum(not node.children for node in new),
            merged=sum(bool(node.children) and node in nodes for node in new),
            level=self.level,
            fits=size + room <= self._limits.view_room,
        )


def _tokens(entries: Iterable[Entry]) -> int:
    return sum(entry.tokens for entry in entries)


def _water_level(sizes: Iterable[int], room: int) -> int:
    """Returns the largest length for which the sum of min(size, length) is within the room."""
    smallest_first = sorted(sizes)
    for at, size in enumerate(smallest_first):
        left = len(smallest_first) - at
        if size * left > room:
            return room // left
        room -= size
    return max(smallest_first, default=0)
