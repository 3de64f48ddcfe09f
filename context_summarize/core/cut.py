"""The cut: the frozen value that says, with the rows and the texts, what a request shows; and its form in a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from context_summarize.core.parts import Ends

_Count = Annotated[int, Field(ge=0)]


class Shortening(NamedTuple):
    """A rule for rows that are shown cut."""

    until: int
    """Rows up to this message, by the log's numbers."""
    above: int
    """Tokens above which a row is cut."""
    keep: int
    """Tokens that are kept of it."""
    only_results: bool = True
    """False for rows of any kind, apart from the host's instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A compaction. Nothing else of a session's past decides what a request shows of its log.

    Groups are rendered groups, rows are rendered rows, both counted from the log's beginning: hosts save all of these
    and no others, so that a resumed log has the same numbers. What follows from log and cut is kept nowhere: the tree,
    the verbatim part, the rows that are shown although they are summarised, the shortened rows, the thread.
    """

    groups: _Count = 0
    """Groups [0, groups) are summarised."""
    rows: _Count = 0
    """Rows that the log had when the compaction was made; 0 = none has been made."""
    keep_recent: _Count = 0
    """Newest rows that the compaction left alone, those included that came while it waited."""
    ends: Ends = field(default_factory=Ends)
    shortened: tuple[Shortening, ...] = ()
    """Which rows are cut. Of several rules for a row the one that keeps least counts."""
    is_bare: bool = False
    """True if there is no room for summaries: one line represents them all."""
    thread_room: _Count = 0
    """Tokens that the thread may take; 0 = it is left out."""
    pins: tuple[_Count, ...] = ()
    """Groups that the user wants verbatim from the next compaction on."""
    pinned: tuple[_Count, ...] = ()
    """Groups that are verbatim because they were among the pins when the compaction was made."""
    fallbacks: tuple[str, ...] = ()
    """Keys of the summaries that code writes, because no model did in time. They stay until the next compaction."""
    changed_at: _Count = 0
    """Rows that the log had when a later compaction was taken back; 0 = none was."""
    unsent_at: _Count = 0
    """Rows that the log had when a session resumed with a view that its provider may never have got; 0 = it has."""

    @property
    def shape(self) -> Cut:
        """What the cut shows: the cut without the pins, which only the next one shows."""
        return replace(self, pins=())

    @property
    def since(self) -> int:
        """Rows that the log had when the view last changed otherwise than by growth."""
        return max(self.rows, self.changed_at)

    @property
    def bound_from(self) -> int:
        """Rows that the log had when the provider first got the view; older ones were made behind other rows."""
        return max(self.since, self.unsent_at)


_CUT = TypeAdapter(Cut)


_FIELDS = {one.name for one in fields(Cut)}


def to_data(cut: Cut) -> dict[str, Any]:
    """Returns a cut as JSON data."""
    data: dict[str, Any] = _CUT.dump_python(cut, mode="json")
    return data


def from_data(data: Any, rows: int, groups: int) -> Cut | None:
    """Returns the cut of these data; None if they have another form, say what no cut can, or belong to a longer log.

    Rows that came behind the cut may be gone: what holds for those that the log had later holds for all that it has.

    Args:
        rows, groups: the rendered rows and groups of the log that it is for.
    """
    if not isinstance(data, Mapping) or data.keys() != _FIELDS:
        return None
    try:
        cut = _CUT.validate_python(data)
    except ValidationError:
        return None
    if cut.rows > rows or cut.groups > groups or not _is_sound(cut, groups):
        return None
    return replace(cut, changed_at=min(cut.changed_at, rows), unsent_at=min(cut.unsent_at, rows))


def _is_sound(cut: Cut, groups: int) -> bool:
    """Returns True if the ends follow each other, and pins are groups of a log that has so many."""
    lengths, forced = cut.ends.lengths, cut.ends.forced
    starts = [length.from_group for length in lengths]
    bounds = [bound for part in forced for bound in (part.start, part.end)]
    return (
        all(length.segment_tokens > 0 and length.most > 1 for length in lengths)
        and (starts[:1] == [0] if cut.groups else starts[:1] in ([], [0]))
        and all(one < other for one, other in pairwise(starts))
        and all(part.start < part.end <= cut.groups for part in forced)
        and bounds == sorted(bounds)
        and all(pin < groups for pin in (*cut.pins, *cut.pinned))
    )
