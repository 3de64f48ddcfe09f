"""A cut under construction: each step shortens or summarises more. `plan.py` says which steps are taken. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from context_summarize.core.cut import Cut, Shortening
from context_summarize.core.entries import HARD_FLOOR, Entry, short_length
from context_summarize.core.frames import no_summary, opening_entry, summary_entry
from context_summarize.core.limits import Limits
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary, estimated, with_children
from context_summarize.core.parts import Forced
from context_summarize.core.view import Rows, first_row, leaves_of, nodes_of
from context_summarize.redaction import withholds

Reason = Literal["threshold", "manual", "must_fit", "cold_cache"]
"""Why a compaction is made."""
_AIMS = (0.9, 0.6, 0.3, 0.0)
"""Shares of the room to aim at when any row may be cut. A share below 1 leaves room for the next row. If the view still
does not fit, rows are cut again with the next share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that a plan is made from. Planning changes nothing in it."""

    log: Log
    cut: Cut
    """The cut in force."""
    tokens: int
    """Tokens of the view in force, without the system prompt."""
    limits: Limits
    text_of: Callable[[Node], Summary | None]
    """Returns the text that a new cut would show for a node; None while none is known."""
    thread: int = 0
    """Tokens of the thread in force."""
    hides_system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compaction before it is made."""

    reason: Reason
    cut: Cut
    tokens_before: int
    tokens_after: int
    """Sizes without the system prompt; after it the thread's room counts as filled."""
    missing: tuple[Node, ...]
    """The nodes whose text is not known."""
    segments: int
    """Parts that are summarised."""
    merged: int
    level: int
    """The last step that it takes: 1 summarise, 2 end a part early, 3 halve `keep_recent`, 4 cut any row, 5 one line
    for all summaries."""
    fits: bool
    unfilled: int = 0
    """Tokens of its room that the thread in force does not take."""

    @property
    def freed(self) -> int:
        """Tokens that the compaction saves, as if the thread filled its room before as it does after."""
        return self.tokens_before + self.unfilled - self.tokens_after


class Draft:
    """A cut under construction. It begins with the cut in force; each step makes its view smaller, and a little worse.

    Args:
        known_only: True to summarise only as far as texts are known.
    """

    def __init__(self, given: PlanInput, *, known_only: bool = False) -> None:
        self._given, self._known_only = given, known_only
        log, before = given.log, given.cut
        self._opening = 0 if log.opens_with_user() else opening_entry(log).tokens
        self._sizes: tuple[object, list[int]] = (None, [])
        """What shortens rows, and for each group of `_from` the tokens from it on."""
        self.has_thread = True
        """False if the view has no room for the thread."""
        self.level = 1
        """The last step taken; see `Plan.level`."""
        self.size_before = given.tokens
        self.cut = replace(
            before,
            rows=log.rendered_rows,
            keep_recent=given.limits.keep_recent,
            results=None,
            newest_results=None,
            any_rows=None,
            is_bare=False,
            thread_room=0,
            pinned=before.pins,
            changed_at=0,
            unsent_at=0,
        )
        self._from = log.from_row(min(first_row(log, before), first_row(log, self.cut)))
        """The groups of the present verbatim part, and the system rows before it that a larger `keep_recent` shows."""

    def size(self) -> int:
        """Returns the tokens of the view, without the system prompt."""
        size = self._size(self.cut)
        return size + self._thread_room(size)

    def fits(self) -> bool:
        """Returns True if the view fits the budget."""
        return self.size() <= self._given.limits.view_room

    def _thread_room(self, size: int) -> int:
        """Returns the tokens that the thread may take: those that it may take now, and half of what this cut frees.

        If only the half counted, cut after cut without new rows would wear it away.
        """
        if not (self.has_thread and self.cut.groups):
            return 0
        given = self._given
        freed = self.size_before - given.thread - size
        return max(0, min(given.limits.notes_room, given.cut.thread_room + freed // 2))

    def _size(self, cut: Cut) -> int:
        """Returns the tokens of the view without its thread."""
        log = self._given.log
        rows = Rows(log, cut, hides_system=self._given.hides_system)
        shown = sum(_tokens(rows.of(group)) for group in rows.beside())
        nodes = no_summary(log, cut.groups).tokens if cut.is_bare and cut.groups else self._size_of(nodes_of(log, cut))
        opening = self._opening if cut.since else 0
        return opening + nodes + shown + self._verbatim_size(rows)

    def _verbatim_size(self, rows: Rows) -> int:
        cut, log = rows.cut, self._given.log
        what = (cut.results, cut.newest_results, cut.any_rows, cut.pinned)
        if self._sizes[0] != what:
            from_here, total = [0], 0
            for group in reversed(self._from):
                total += _tokens(rows.of(group))
                from_here.append(total)
            self._sizes = (what, from_here[::-1])
        first = self._from[0].start if self._from else 0
        gone = log.group_position(rows.first) - log.group_position(first)
        return self._sizes[1][min(gone, len(self._from))]

    def _size_of(self, nodes: Sequence[Node]) -> int:
        """Returns the tokens of the rows of these nodes."""
        log, given = self._given.log, self._given
        known = ((node, given.text_of(node)) for node in nodes)
        return sum(estimated([node]) if text is None else summary_entry(log, node, text).tokens for node, text in known)

    def missing(self, cut: Cut) -> tuple[Node, ...]:
        """Returns the nodes of a cut whose texts are not known."""
        if cut.is_bare:
            return ()
        return tuple(node for node in nodes_of(self._given.log, cut) if self._given.text_of(node) is None)

    def summarise(self, keep_recent: int, goal: int) -> None:
        """Summarises the oldest parts until the view takes no more than `goal` tokens."""
        log = self._given.log
        if not self.cut.ends.lengths:
            return
        parts, limit = leaves_of(log, self.cut), log.summarisable(keep_recent)
        for leaf in parts.leaves[parts.count(self.cut.groups) :]:
            if leaf.end_group > limit or self.size() <= goal:
                break
            longer = replace(self.cut, groups=leaf.end_group)
            if not (self._known_only and self.missing(longer)):
                self.cut = longer

    def end_early(self, keep_recent: int, focus: str | None = None) -> None:
        """Summarises the rows between the last closed part and the newest rows, as a part that ends early."""
        log, cut = self._given.log, self.cut
        end = log.summarisable(keep_recent)
        if end <= cut.groups or not cut.ends.lengths or not leaves_of(log, cut).is_long_enough(cut.groups, end):
            return
        focus = log.redact(focus) if focus and log.redact else focus
        focus = None if withholds(log.redact) else focus
        forced = (*(part for part in cut.ends.forced if part.end <= cut.groups), Forced(cut.groups, end, focus))
        self.cut = replace(cut, groups=end, ends=replace(cut.ends, forced=forced))
        self.level = max(self.level, 2)

    def shorten_results(self) -> None:
        """Cuts results above `shorten_above` tokens, except those among the newest `keep_recent` rows."""
        log, longest = self._given.log, self._given.limits.shorten_above
        until = log.numbered(len(log) - self._given.limits.keep_recent - 1)
        if longest is not None and until > 0:
            self.cut = replace(self.cut, results=Shortening(until, longest, short_length(longest)))

    def shorten_newest_results(self) -> None:
        """Cuts the longest results, also among the newest rows but not in the last group, down to `most_left`."""
        log, limits = self._given.log, self._given.limits
        longest, above = limits.shorten_newest_above, limits.shorten_above
        until = log.numbered(len(log) - log.rows_of_newest_group - 1)
        if longest is None or above is None or until <= 0:
            return
        rows = Rows(log, self.cut)
        shown = (entry for group in log.from_row(rows.first) for entry in rows.of(group))
        sizes = [
            entry.tokens
            for entry in shown
            if entry.origin is not None
            and entry.tokens > longest
            and rows.is_result(entry.origin)
            and log.numbered(entry.origin) <= until
        ]
        length = max(short_length(above), _water_level(sizes, limits.most_left - self.size() + sum(sizes)))
        if any(size > length for size in sizes):
            self.cut = replace(self.cut, newest_results=Shortening(until, length, length))

    def shorten_longest(self) -> None:
        """Cuts the longest rows until the view fits: all rows above one length are cut to that length."""
        log = self._given.log
        for aim in _AIMS:
            rows = Rows(log, self.cut, hides_system=self._given.hides_system)
            groups = (*rows.beside(), *log.from_row(rows.first))
            sizes = [
                entry.tokens
                for group in groups
                for entry in rows.of(group)
                if entry.origin is not None and not rows.is_instruction(entry.origin)
            ]
            room = int(aim * self._given.limits.view_room) - self.size() + sum(sizes)
            length = max(HARD_FLOOR, _water_level(sizes, room))
            self.cut = replace(self.cut, any_rows=Shortening(log.rendered_rows, length, length))
            if self.fits():
                break

    def plan(self, reason: Reason) -> Plan:
        """Returns the finished plan."""
        given, log = self._given, self._given.log
        size = self._size(self.cut)
        room = self._thread_room(size)
        old = {(node.key, node.first_group) for node in with_children(nodes_of(log, given.cut))}
        nodes = nodes_of(log, self.cut)
        new = [node for node in with_children(nodes) if (node.key, node.first_group) not in old]
        after = size + room
        return Plan(
            reason=reason,
            cut=replace(self.cut, thread_room=room),
            tokens_before=self.size_before,
            tokens_after=after,
            missing=self.missing(self.cut),
            segments=sum(not node.children for node in new),
            merged=sum(bool(node.children) and node in nodes for node in new),
            level=self.level,
            fits=after <= given.limits.view_room,
            unfilled=given.cut.thread_room - given.thread,
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
