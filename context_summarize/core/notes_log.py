"""The notes of one history: its summarised groups are read once, in their order, and the row of notes is written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace

from context_summarize.core.frames import notes_row
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import NamedPlace, Node, Summary
from context_summarize.core.view_state import ShownNode, ShownNotes
from context_summarize.messages.reading import rough_size
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import countable_items
from context_summarize.notes.instructions import quoted_lines
from context_summarize.notes.reader import Notes
from context_summarize.notes.values import Kept
from context_summarize.redaction import Redact, traceback_of
from context_summarize.tokens.measure import measure
from context_summarize.transcript.rows import RenderedRow

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 1_000_000
"""Characters of the newest rows that are read whole at one compaction, some 250,000 tokens."""
_LONG_ROW = 125_000
"""Tokens; for the notes, rows are cut as in a segment of this length: they read the ends of long ones."""
_FRAME_TOKENS = 50
"""Estimate of what the row holds beside its lines."""
_INSTRUCTIONS, _SMALL_INSTRUCTIONS, _SMALL = 0.02, 0.05, 400
"""Share of the budget that instructions may take; a small window's, up to so many tokens."""


@dataclass(frozen=True, slots=True)
class NotesAsk:
    """What one row of notes is written for."""

    frontier: int
    """It tells of the rendered groups before it."""
    frontier_row: int
    """History rows from here on stand verbatim."""
    room: int
    """Tokens that the row may take."""
    budget: int
    """Tokens of a whole request."""
    operations: tuple[str, ...] = ()
    """What the host says is under way."""


class NotesLog:
    """Reads rows after redaction; what it has read stays with it while the history grows. Threads take turns.

    Args:
        notes: fresh ones, for this history.
        heading: under which the prompt set asks a summary to quote instructions; "" = it asks for none.
    """

    def __init__(self, builder: NodeBuilder, redact: Redact | None, notes: Notes, heading: str) -> None:
        self._builder, self._history = builder, builder.history
        self._redact = redact
        self._heading = heading
        self._notes = notes
        self._lock = threading.Lock()
        """A request that is cancelled leaves its thread behind."""
        self._next_group = 0
        self._unreadable: set[int] = set()
        """Groups that the notes pass over. Once there is one, each further one is first read for a trial."""
        self._verified: set[str] = set()
        """Keys of the summaries whose quotations have been looked up."""

    def copy(self) -> NotesLog:
        """Another one that has read the same."""
        count = self._notes.count
        with self._lock:
            other, notes = copy(self), deepcopy(self._notes, {id(count): count})
            vars(other).update(_notes=notes, _lock=threading.Lock())
            vars(other).update(_verified={*self._verified}, _unreadable={*self._unreadable})
        return other

    def instructions(self, frontier: int) -> tuple[NamedPlace, ...]:
        """Where the instructions stand that have been found so far before this rendered group; a record keeps them."""
        last = self._history.message_range(0, frontier)[1] if frontier else 0
        with self._lock:
            places = self._notes.places
        return tuple(place for place in places if place[0] <= last)

    def restore(self, places: Sequence[NamedPlace]) -> None:
        """Take in the instructions of a record, before its rows are read."""
        with self._lock:
            self._notes.restore(places)

    def take_in(self, made: Sequence[tuple[Node, Summary]], frontier: int) -> None:
        """Read the rendered groups before the frontier, and look up what a model's summaries of them quote."""
        with self._lock:
            self._take_in(made, frontier)

    def _take_in(self, made: Sequence[tuple[Node, Summary]], frontier: int) -> None:
        self._read(frontier)
        new = [(node, one.text) for node, one in made if not one.fallback and node.key not in self._verified]
        if new:
            self._notes.values.mention("\n".join(text for _, text in new))
        for node, text in new:
            self._verified.add(node.key)
            self._verify(node, text)

    def write(self, shown: Sequence[ShownNode], ask: NotesAsk) -> ShownNotes | None:
        """The row for the rendered groups before the frontier; None where nothing is told.

        Args:
            shown: the summaries that stand before it; what they and the verbatim rows hold is left out.
        """
        with self._lock:
            is_behind = ask.frontier < self._next_group
            if not is_behind:
                return self._write(shown, ask)
        # A compaction was taken back: rows that count as read are verbatim again.
        earlier = NotesLog(self._builder, self._redact, self._notes.fresh(), self._heading)
        earlier._unreadable |= self._unreadable
        earlier.restore(self.instructions(ask.frontier))
        return earlier.write(shown, ask)

    def _write(self, shown: Sequence[ShownNode], ask: NotesAsk) -> ShownNotes | None:
        self._take_in([(item.node, item.summary) for item in shown], ask.frontier)
        verbatim = (row.raw for row in self._history.rows[ask.frontier_row :])
        held = "\n".join([*(item.summary.text for item in shown), _texts(verbatim)])
        most = int(max(_INSTRUCTIONS * ask.budget, min(_SMALL, _SMALL_INSTRUCTIONS * ask.budget)))
        operations = [self._redact(told) if self._redact else told for told in ask.operations]
        goes_on = any(row.user for row in self._history.rows[ask.frontier_row :])
        text = self._notes.written(ask.room - _FRAME_TOKENS, held, most, operations, goes_on=goes_on)
        return replace(self.frame(text, ask.frontier), after=len(shown)) if text else None

    def kept(self, first_group: int, end_group: int, rows: Iterable[JsonRow]) -> Kept:
        """What these rows of a view hold of the exact values of the rendered groups [first_group, end_group)."""
        if end_group <= first_group:
            return Kept()
        first, last = self._history.message_range(first_group, end_group)
        shown = _texts(rows)
        with self._lock:
            return self._notes.values.kept(first, last, shown)

    def frame(self, text: str, frontier: int) -> ShownNotes:
        """The row of these lines, which tell of the rendered groups before `frontier`."""
        row = notes_row(self._history, text, frontier)
        return ShownNotes(text, row, measure(row, self._notes.count))

    def _read(self, frontier: int) -> None:
        """Of rows that come all at once, as at an import, only the user's are read where they lie far back."""
        near, left = frontier, _MOST_AT_ONCE
        while near > self._next_group and left > 0:
            near -= 1
            group = self._history.rendered_group(near)
            left -= sum(rough_size(row.raw) for row in self._history.rows[group.start : group.end])
        while self._next_group < frontier:
            ordinal = self._next_group
            self._next_group += 1
            if ordinal >= near or self._history.rendered_group(ordinal).user:
                self._read_group(ordinal, frontier)

    def _read_group(self, ordinal: int, frontier: int) -> None:
        """Read a group whole or not at all; if it is the first that fails, all are read anew without it."""
        if ordinal in self._unreadable:
            return
        is_first, rows = not self._unreadable, self._rows(ordinal)
        try:
            if not is_first:
                self._notes.fresh().read(rows)
            self._notes.read(rows)
        except Exception as error:  # noqa: BLE001 - the rows may hold anything; it is logged
            self._unreadable.add(ordinal)
            if is_first:
                told, numbers = traceback_of(error), [row.number for row in rows]
                told = self._redact(told) if self._redact else told
                logger.error("the notes pass over message %d, and all others that cannot be read: %s", numbers[0], told)
                places, self._notes = self._notes.places, self._notes.fresh()
                self._notes.restore([place for place in places if place[0] not in numbers])
                self._next_group, self._verified = 0, set()
                self._read(frontier)

    def _rows(self, ordinal: int) -> list[RenderedRow]:
        group, number = self._history.rendered_group(ordinal), self._history.message_range(ordinal, ordinal + 1)[0]
        return self._history.render(group, number=number, segment_tokens=_LONG_ROW, redact=self._redact)

    def _verify(self, node: Node, summary: str) -> None:
        """Look up what a model's summary quotes as instructions in the user's rows that it stands for."""
        if self._heading and (lines := [*quoted_lines(summary, self._heading)]):
            groups = range(node.first_group, node.end_group)
            said = (at for at in groups if self._history.rendered_group(at).user and at not in self._unreadable)
            users = map(self._rows, said)
            self._notes.verify(lines, [(row.number, row.said) for rows in users for row in rows])


def _texts(rows: Iterable[JsonRow]) -> str:
    """All that these rows say."""
    return "\n".join(item for row in rows for item in countable_items(row) if isinstance(item, str))
