"""The conversation that a request touches: a frozen value, swapped in one assignment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from context_summarize.config import Config
from context_summarize.core.log import Log
from context_summarize.core.notes_log import NotesLog
from context_summarize.core.render import Rendering, render
from context_summarize.core.segments import Cutting, Segments, derive_segment_tokens, derive_summary_tokens, is_too_long
from context_summarize.core.view import View

_FRESH = 20
"""Rows behind a compaction within which another one is made only where the base is full."""
_MOST_EARLIER = 8
"""Views that are kept so that compactions can be taken back; records know earlier ones."""


@dataclass(frozen=True, slots=True)
class Steered:
    """Changes by the user in a session: pins, and compactions that were taken back."""

    pins: frozenset[int] = frozenset()
    """Rendered groups that stay verbatim from the next compaction on."""
    undone: tuple[str, ...] = ()
    """Hashes of the records of compactions that were taken back."""
    undone_at: int | None = None
    """Tokens of the view when a compaction was taken back, and none has followed; else None."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A log with its view. The log, its segments and its notes grow at their ends; another log is another value."""

    log: Log
    notes: NotesLog
    """Readings of its summarised part."""
    view: View = field(default_factory=View)
    segments: Segments | None = None
    """None before the first request whose budget is known."""
    adopted: bool = False
    """True once recorded compactions have been looked for."""
    steered: Steered = Steered()
    earlier: tuple[View, ...] = ()
    """The views before the last few compactions of this process, the oldest first: what can be taken back."""

    def rendering(self) -> Rendering:
        """Returns the rows of a request with this view."""
        return render(self.log, self.view)

    def left(self, rendering: Rendering) -> int:
        """Returns the tokens of the view as the last compaction, or the undo of one, has left it."""
        return max(rendering.left, self.steered.undone_at or 0)

    def with_view(self, view: View) -> Conversation:
        """Returns the conversation with another view of its past; a factory's prompt hides what it has hidden."""
        return replace(self, view=replace(view, hides_system=self.view.hides_system), segments=self._segments_for(view))

    def compacted(self, view: View, record_hash: str | None) -> Conversation:
        """Returns the conversation with the view of a compaction, whose record has this hash."""
        undone = tuple(hash_ for hash_ in self.steered.undone if hash_ != record_hash)
        steered = replace(self.steered, undone=undone, undone_at=None)
        earlier = (*self.earlier, self.view)[-_MOST_EARLIER:]
        return replace(self, view=view, segments=self._segments_for(view), earlier=earlier, steered=steered)

    def _segments_for(self, view: View) -> Segments | None:
        return self.segments and self.segments.going_on_from(view.frontier)

    @property
    def is_fresh(self) -> bool:
        """True where few rows have come since the last compaction: the next one can wait until the base is full."""
        is_made = self.view.compactions > 0 and self.steered.undone_at is None
        return is_made and len(self.log) - self.view.rows_at_compaction < _FRESH

    def cut_for(self, base: int, config: Config, cutting: Cutting) -> Conversation:
        """Returns the conversation with segments as a base wants them.

        Their length is fixed at the first base, and derived anew when it is too long for a later one.
        """
        given, now = config.segment_tokens, self.segments
        if now is not None and (given is not None or not is_too_long(now.cutting.segment_tokens, base)):
            return self
        segment = given or derive_segment_tokens(base)
        cutting = replace(cutting, segment_tokens=segment, summary_tokens=derive_summary_tokens(segment))
        return replace(self, segments=Segments(self.log, cutting, self.view.frontier))


def named(pins: Iterable[int], log: Log) -> tuple[tuple[int, str], ...]:
    """Returns pinned groups by number and hash, so that they are found in an edited history."""
    return tuple((at, log.hash_of(at)) for at in sorted(pins))


def moved(pins: Iterable[tuple[int, str]], log: Log) -> frozenset[int]:
    """Returns these pinned groups in this log; those that are gone or changed are left out."""
    return frozenset(at for pin in pins if (at := log.find_group(*pin)) is not None)
