"""The conversation that a request touches: a frozen value, swapped in one assignment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from context_summarize.background import LONG, in_thread
from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder, derive_segment_tokens, derive_summary_tokens
from context_summarize.core.notes_log import NotesLog
from context_summarize.core.view import ShownGroups, View
from context_summarize.core.view_state import ViewState

_MOST_EARLIER = 8
"""Views that are kept so that compactions can be taken back; records know earlier ones."""
_LEAST_SEGMENT = 512
"""Segments of this length are cut in the smallest windows too."""


@dataclass(frozen=True, slots=True)
class Steered:
    """Where the user has put a session, beside its view."""

    pins: frozenset[int] = frozenset()
    """Rendered groups that stay verbatim from the next compaction on."""
    undone: tuple[str, ...] = ()
    """Hashes of the records of compactions that were taken back."""
    undone_at: int | None = None
    """Tokens of the view when a compaction was taken back, and none has followed; else None."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A history with its view. The history and its indexes grow at their ends; another history is another value."""

    history: History
    builder: NodeBuilder
    """Its segments and their nodes."""
    groups: ShownGroups
    """Its groups as a view shows them."""
    notes: NotesLog
    """What code knows of its summarised part."""
    view: ViewState
    rows: View
    """The rows of a request with this view."""
    adopted: bool = False
    """True once recorded compactions have been looked for."""
    steered: Steered = Steered()
    earlier: tuple[ViewState, ...] = ()
    """The views before the last few compactions of this process, the oldest first: what can be taken back."""

    @property
    def left(self) -> int:
        """Tokens of the view as the last compaction, or the undo of one, has left it."""
        return max(self.rows.left, self.steered.undone_at or 0)

    async def advance(self) -> None:
        """Index what has come since the last time; in threads where that takes long."""
        if self.builder.backlog() > LONG:
            ahead = self.builder.copy()
            await asyncio.to_thread(ahead.advance)
            self.builder.take(ahead)
        self.builder.advance()
        await in_thread(self.history.backlog(), self.history.advance)


def with_view(chat: Conversation, view: ViewState, *, hides_system: bool) -> Conversation:
    """The conversation with a view of its past; earlier groups are neither counted nor converted.

    Args:
        hides_system: a factory's prompt takes the place of stored system rows.
    """
    first = chat.history.group_position(view.frontier_row)
    groups = ShownGroups(chat.history, chat.groups.count, hides_system=hides_system, first=first)
    return replace(chat, view=view, groups=groups, rows=View(view, groups))


def compacted(chat: Conversation, view: ViewState, record_hash: str | None) -> Conversation:
    """The conversation with the view of a compaction, whose record has this hash."""
    chat.builder.go_on_from(view.frontier)
    undone = tuple(hash_ for hash_ in chat.steered.undone if hash_ != record_hash)
    steered = replace(chat.steered, undone=undone, undone_at=None)
    earlier = (*chat.earlier, chat.view)[-_MOST_EARLIER:]
    return replace(chat, view=view, rows=View(view, chat.groups), earlier=earlier, steered=steered)


def derive_sizes(chat: Conversation, config: Config, budget: int) -> None:
    """Fix the segment length at the first budget; derive it anew when it is too long for a later one."""
    if config.threshold_tokens is not None:  # all shares are of what that is the threshold's share of
        budget = min(budget, int(config.threshold_tokens / config.threshold_share))
    sizes, given = chat.builder.segment_sizes, config.segment_tokens
    if sizes is not None and (given is not None or sizes[0] <= budget / 4 or sizes[0] <= _LEAST_SEGMENT):
        return
    segment = given or derive_segment_tokens(budget)
    chat.builder.start(segment, derive_summary_tokens(segment), chat.view.frontier)


def named(pins: Iterable[int], history: History) -> tuple[tuple[int, str], ...]:
    """Pinned groups by number and hash, so that they are found in an edited history."""
    return tuple((at, history.hash_of(at)) for at in sorted(pins))


def moved(pins: Iterable[tuple[int, str]], history: History) -> frozenset[int]:
    """These pinned groups in this history; those that are gone or changed are left out."""
    return frozenset(at for pin in pins if (at := history.find_group(*pin)) is not None)
