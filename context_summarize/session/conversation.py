"""The conversation, a frozen value: each change is a new value, and one assignment makes it current."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from context_summarize.config import Config
from context_summarize.core.log import Log
from context_summarize.core.nodes import View
from context_summarize.core.render import Rendering, render
from context_summarize.core.segments import Cutting, Segments, derive_segment_tokens, derive_summary_tokens, is_too_long
from context_summarize.core.thread import Thread

_FRESH = 20
"""Until this many rows have come after a compaction, another one is made only if the base is full."""
_MOST_EARLIER = 8
"""Earlier views that are kept in memory for `undo()`; records hold older ones."""


@dataclass(frozen=True, slots=True)
class Steered:
    """The user's changes to a session: pins, and compactions that were taken back."""

    pins: frozenset[int] = frozenset()
    """Rendered groups that stay verbatim from the next compaction on."""
    undone: tuple[str, ...] = ()
    """Hashes of the records of compactions that were taken back."""
    undone_at: int | None = None
    """Tokens of the view right after the last undo; None once a compaction has followed."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A log with its view. The log, its segments and its readings grow at their ends; a new log needs a new value."""

    log: Log
    thread: Thread
    """Quotes its summarised part."""
    view: View = field(default_factory=View)
    segments: Segments | None = None
    """None before the first request whose budget is known."""
    adopted: bool = False
    """True once recorded compactions have been looked for."""
    steered: Steered = Steered()
    earlier: tuple[View, ...] = ()
    """The views before the last few compactions of this process, the oldest first; `undo()` goes back to the last."""

    def rendering(self) -> Rendering:
        """Returns the rows of a request with this view."""
        return render(self.log, self.view)

    def left_by_last(self, rendering: Rendering) -> int:
        """Returns the tokens of the view right after the last compaction or undo."""
        return max(rendering.left, self.steered.undone_at or 0)

    def with_view(self, view: View) -> Conversation:
        """Returns the conversation with another view. System rows that a factory's prompt hides stay hidden."""
        return replace(self, view=replace(view, hides_system=self.view.hides_system), segments=self._segments_for(view))

    def compacted(self, view: View, record_hash: str | None) -> Conversation:
        """Returns the conversation with the view of a compaction. `record_hash` is the hash of its record."""
        undone = tuple(hash_ for hash_ in self.steered.undone if hash_ != record_hash)
        steered = replace(self.steered, undone=undone, undone_at=None)
        earlier = (*self.earlier, self.view)[-_MOST_EARLIER:]
        return replace(self, view=view, segments=self._segments_for(view), earlier=earlier, steered=steered)

    def _segments_for(self, view: View) -> Segments | None:
        return self.segments and self.segments.with_boundary_at(view.frontier)

    @property
    def is_fresh(self) -> bool:
        """True if few rows have come since the last compaction: the next one waits until the base is full."""
        is_made = self.view.compactions > 0 and self.steered.undone_at is None
        return is_made and len(self.log) - self.view.rows_at_compaction < _FRESH

    def cut_for(self, base: int, config: Config, cutting: Cutting) -> Conversation:
        """Returns the conversation with segments that fit the base.

        The first base fixes their length. The length is derived again only if it is too long for a later base.
        """
        given, now = config.segment_tokens, self.segments
        if now is not None and (given is not None or not is_too_long(now.cutting.segment_tokens, base)):
            return self
        segment = given or derive_segment_tokens(base)
        cutting = replace(cutting, segment_tokens=segment, summary_tokens=derive_summary_tokens(segment))
        return replace(self, segments=Segments(self.log, cutting, self.view.frontier))


def named(pins: Iterable[int], log: Log) -> tuple[tuple[int, str], ...]:
    """Returns pinned groups by number and hash, so that they are found in an edited history."""
    return tuple((at, log.hash_of(at).hex()) for at in sorted(pins))


def moved(pins: Iterable[tuple[int, str]], log: Log) -> frozenset[int]:
    """Returns these pinned groups in this log; those that are gone or changed are left out."""
    return frozenset(at for pin in pins if (at := log.find_group(*pin)) is not None)
