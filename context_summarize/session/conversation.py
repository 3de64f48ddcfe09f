"""The conversation that a request touches: a frozen value, swapped in one assignment; and the records of its views."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from context_summarize.background import LONG, in_thread
from context_summarize.config import Config
from context_summarize.core.frames import show_node, show_notes
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder, derive_segment_tokens, derive_summary_tokens
from context_summarize.core.nodes import SCHEMA_VERSION
from context_summarize.core.notes_log import NotesLog
from context_summarize.core.view import ShownGroups, View
from context_summarize.core.view_state import Recorded, ViewState, from_data, to_data
from context_summarize.messages.rows import JsonRow
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

_MOST_EARLIER = 8
"""Views that are kept so that compactions can be taken back; records know earlier ones."""
_FRESH = 20
"""Rows behind a compaction within which another one is made only where the request does not fit."""
_LEAST_SEGMENT = 512
"""Segments of this length are cut in the smallest windows too."""
_AT_ONCE = 500
"""Hashes that are looked up together: the wanted record is mostly among those of the newest rows."""


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

    @property
    def is_fresh(self) -> bool:
        """True where few rows have come since the last compaction: the next one can wait until the room is full."""
        return self.view.compactions > 0 and len(self.history) - self.view.rows_at_compaction < _FRESH

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


def derive_sizes(chat: Conversation, config: Config, base: int) -> None:
    """Fix the segment length at the first base; derive it anew when it is too long for a later one."""
    sizes, given = chat.builder.segment_sizes, config.segment_tokens
    if sizes is not None and (given is not None or sizes[0] <= base / 4 or sizes[0] <= _LEAST_SEGMENT):
        return
    segment = given or derive_segment_tokens(base)
    chat.builder.start(segment, derive_summary_tokens(segment), chat.view.frontier)


def named(pins: Iterable[int], history: History) -> tuple[tuple[int, str], ...]:
    """Pinned groups by number and hash, so that they are found in an edited history."""
    return tuple((at, history.hash_of(at)) for at in sorted(pins))


def moved(pins: Iterable[tuple[int, str]], history: History) -> frozenset[int]:
    """These pinned groups in this history; those that are gone or changed are left out."""
    return frozenset(at for pin in pins if (at := history.find_group(*pin)) is not None)


# --- records ----------------------------------------------------------------------------------------------------------


class Records:
    """Writes the records of one session, and finds the one that it goes on from. No provider is asked.

    Args:
        session_id: the host's; None without one: where the user has put the session is not kept then.
    """

    def __init__(self, services: Services, tasks: SummaryRegistry, session_id: str | None) -> None:
        self._store, self._tasks = services.store, tasks
        self._writing: asyncio.Task[None] | None = None
        """The last write; it waits for those before it, or an older state would overwrite a newer one."""
        config, prompts = services.config, services.prompts
        self._frame, self._count = prompts.frame.fill, services.count
        self._keep_recent = config.keep_recent
        sizes = (config.segment_tokens, config.fan_in, config.redact)
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, str(sizes))
        self._seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        """What a record's hash begins with: summaries of other prompts or settings are not adopted."""
        self._own = None if session_id is None else hashlib.sha256(f"{self._seed}\n{session_id}".encode()).hexdigest()

    async def write(self, chat: Conversation, *, is_new: bool = True) -> None:
        """Record the view, and where the user has put the session; it is written whoever is cancelled meanwhile.

        Args:
            is_new: else the view has been taken up from a record.
        """
        history, steered = chat.history, chat.steered
        found, view = dict[str, Any](), None
        if chat.builder.segment_sizes is not None:
            view = to_data(Recorded(chat.view, chat.builder.segment_sizes), history)
            if is_new and (hash_ := self.hash_of(history, chat.view)) is not None:
                found[hash_] = view
        if self._own is not None:
            pins, rows = [list(pin) for pin in named(steered.pins, history)], len(history.rendered)
            shown = {"of": history.running_hash(self._seed, rows) if rows else None, "view": view}
            found[self._own] = {"pins": pins, "undone": list(steered.undone), "undone_at": steered.undone_at, **shown}
        self._writing = asyncio.create_task(self._put(found, self._writing), name="context-summarize:record")
        await asyncio.shield(self._writing)

    async def _put(self, found: dict[str, Any], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        for hash_, data in found.items():
            await self._store.put_record(hash_, data)

    def hash_of(self, history: History, view: ViewState) -> str | None:
        """The hash of a view's record: of the rows that are summarised, and those up to the last one shortened.

        None for a view that shows every row whole.
        """
        until = _until(history, view)
        return history.running_hash(self._seed, until) if until else None

    async def close(self) -> None:
        """Wait a little for what is being written."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=0.5)

    async def resume(self, chat: Conversation) -> tuple[Recorded | None, Steered, bool]:
        """What a conversation goes on from, None without a compaction; where the user has put it; whether that is new.

        A history that goes on from the rows which this session had, shows the same view. Another one takes up the
        farthest record that it begins with.
        """
        own = (await self._store.get_records([self._own])).get(self._own) if self._own is not None else None
        own = own if isinstance(own, dict) else None  # a user's own store may give anything
        hashes = await self._hashes(chat.history)
        steered = _steered(own, chat.history) if own and chat.steered == Steered() else chat.steered
        if own and own.get("of") in hashes:
            found = from_data(own.get("view"), chat.history, self._keep_recent)
            if found is not None or own.get("view") is None:
                return found and await self._shown(chat, found), steered, False
        found = await self._farthest(chat, hashes, steered.undone)
        return found, steered, own is not None or found is not None

    async def earlier(self, chat: Conversation) -> ViewState:
        """The view before the last compaction: after a restart, nothing but its record knows it."""
        hashes = (await self._hashes(chat.history))[: _until(chat.history, chat.view)]
        found = await self._farthest(chat, hashes, {*chat.steered.undone, *hashes[-1:]})
        return found.view if found else ViewState()

    def undone(self, chat: Conversation, earlier: ViewState) -> tuple[str, ...]:
        """The hashes of the records that the session passes over once it has gone back to the earlier view."""
        taken_back = self.hash_of(chat.history, chat.view)
        if taken_back is None or taken_back == self.hash_of(chat.history, earlier):
            return chat.steered.undone  # the earlier view's record takes its place
        return (*chat.steered.undone, taken_back)

    async def _hashes(self, history: History) -> list[str]:
        """The running hash after each rendered group."""
        await in_thread(history.backlog(), history.advance)
        groups = len(history.rendered)
        return await in_thread(100 * groups, history.running_hashes, self._seed, groups)

    async def _farthest(self, chat: Conversation, hashes: list[str], undone: Container[str]) -> Recorded | None:
        """What the farthest record of these hashes keeps, those that are undone aside."""
        for end in range(len(hashes), 0, -_AT_ONCE):
            some = hashes[max(0, end - _AT_ONCE) : end][::-1]
            records = await self._store.get_records(some)
            for hash_ in [hash_ for hash_ in some if hash_ in records and hash_ not in undone]:
                found = from_data(records[hash_], chat.history, self._keep_recent)
                if found is not None:
                    return await self._shown(chat, found)
        return None

    async def _shown(self, chat: Conversation, found: Recorded) -> Recorded:
        """The same with the rows of its view; a text that is gone becomes a fallback."""
        view, notes, history = found.view, found.view.notes, chat.history
        shown = await self._tasks.place(view.nodes, chat.builder)
        for at, text in found.cut.items():
            if at < len(shown) and not shown[at].summary.fallback:
                node, summary = shown[at].node, shown[at].summary
                shown[at] = show_node(history, node, summary, self._frame, self._count, text)
        if notes is not None:
            notes = show_notes(history, notes.text, view.frontier, self._count)
        return replace(found, view=replace(view, shown=tuple(shown), notes=notes))


def _until(history: History, view: ViewState) -> int:
    """Rendered groups that a view's record is of: those summarised, and those up to the last row that is shortened."""
    last = max((number for row in view.shortened if (number := history.number_of(row))), default=0)
    group = history.group_of_message(min(last, history.closed_rows()))
    return max(view.frontier, 0 if group is None else group + 1)


def _steered(own: JsonRow, history: History) -> Steered:
    try:
        at = None if own["undone_at"] is None else int(own["undone_at"])
        return Steered(moved(own["pins"], history), tuple(map(str, own["undone"])), at)
    except (KeyError, TypeError, ValueError):
        return Steered()  # of another form
