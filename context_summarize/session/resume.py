"""Resuming: a recorded compaction is found again, or carried over to an edited history; no provider is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from context_summarize.background import advance
from context_summarize.config import Config
from context_summarize.core.carrying import carry
from context_summarize.core.finding import pins_in
from context_summarize.core.history import History
from context_summarize.core.nodes import CompactionRecord, SessionMarks
from context_summarize.core.notes_log import NotesAsk
from context_summarize.core.view_state import ShownNode, ShownNotes, ViewState
from context_summarize.session.conversation import Conversation, Steered, start_segments
from context_summarize.session.limits import notes_room
from context_summarize.session.records import Records
from context_summarize.summaries.registry import SummaryRegistry


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a conversation goes on with."""

    record: CompactionRecord | None
    """What the view was made from; None without a compaction."""
    view: ViewState
    steered: Steered
    is_carried: bool = False
    """True for a record that was carried over to an edited history: it is not stored yet."""


class Resumption:
    """Takes up the longest recorded compaction that matches a history, or what an edited one keeps of its own."""

    def __init__(self, records: Records, tasks: SummaryRegistry, config: Config) -> None:
        self._records = records
        self._tasks = tasks
        self._config = config
        self._own_budget: int | None = None
        """Of the last request; a status line may ask before the next one."""

    async def find(self, chat: Conversation, own_budget: int | None, is_current: Callable[[], bool]) -> Resumed | None:
        """What the conversation goes on with; None if nobody needs it any more."""
        self._own_budget = own_budget or self._own_budget
        before = chat.before or await self._records.of_session(chat.history)
        marks = None if before is None else before.session
        if before is not None and marks is not None:
            await advance(chat.history)
        exact = before if chat.before is None and self._is_of(before, chat.history) else None
        steered = _steered(chat.history, marks)
        for record, carried in await self._candidates(chat, before, exact):
            if not is_current():
                return None
            view = await self._view(chat, record)
            if view is not None:
                steered = steered if carried or record is exact else replace(steered, held_at=None)
                return Resumed(record, view, steered, carried)
        return Resumed(None, chat.view, replace(steered, held_at=None))

    async def _candidates(
        self, chat: Conversation, before: CompactionRecord | None, exact: CompactionRecord | None
    ) -> list[tuple[CompactionRecord, bool]]:
        """Records that may be taken up, the best first, each with whether it was carried over.

        Args:
            before: what the session knows of its conversation, which may have been edited since.
            exact: the same, if it has not been.
        """
        marks = None if before is None else before.session
        carried = None
        if before is not None and exact is None:
            carried = carry(before, chat.history, chat.builder, self._config.fan_in)
        undone, is_held = ((), False) if marks is None else (marks.undone, marks.held_at is not None)
        found = [(one, False) for one in await self._records.matching(chat.history) if one.hash not in undone]
        if carried is not None and (carried.is_edit or carried.record.nodes):
            # A record of these very rows that reaches as far has no fallback in it.
            reach = carried.record.frontier_group + (not carried.is_remade)
            shorter = (at for at, (one, _) in enumerate(found) if is_held or one.frontier_group < reach)
            found.insert(next(shorter, len(found)) if carried.is_edit else len(found), (carried.record, True))
        if exact is not None:
            found.insert(0 if is_held else len(found), (exact, False))
        return found

    def _is_of(self, record: CompactionRecord | None, history: History) -> bool:
        """Whether a history begins with the rows that a session's own record is about."""
        if record is None or record.session is None or not 0 <= record.frontier_group <= len(history.rendered):
            return False
        return record.session.running == self._records.hash_at(history, record.frontier_group)

    async def earlier(self, chat: Conversation) -> ViewState | None:
        """The view of the newest compaction before the last one; None if it was the first.

        It is looked for in the records: after a restart, nothing else knows it.
        """
        for record in await self._records.matching(chat.history):
            is_earlier = record.frontier_group < chat.view.frontier and record.hash not in chat.steered.undone
            view = await self._view(chat, record) if is_earlier else None
            if view is not None:
                return view
        return None

    def undone(self, chat: Conversation, earlier: ViewState) -> tuple[str, ...]:
        """The hashes of the records that the session passes over once it has gone back to the earlier view."""
        history, view = chat.history, chat.view
        if view.frontier in (0, earlier.frontier):
            return chat.steered.undone
        return (*chat.steered.undone, self._records.hash_at(history, view.frontier))

    def cut(self, chat: Conversation, record: CompactionRecord) -> None:
        """Cut what the record does not cover with the record's sizes."""
        if record.segment_tokens > 0 and record.summary_tokens > 0:
            start_segments(chat, record.segment_tokens, record.summary_tokens, self._config.fan_in, record.ahead)

    async def _view(self, chat: Conversation, record: CompactionRecord) -> ViewState | None:
        """The view of a record; a text that is gone becomes a fallback."""
        history = chat.history
        if not _is_sound(record, history):
            return None
        await self._tasks.place(record.nodes, chat.builder)
        shown = self._tasks.rows(record.nodes)
        chat.notes.restore(record.instructions)
        frontier_row = history.row_after(record.frontier_group, len(history) - self._config.keep_recent)
        if record.notes is None:
            notes = await asyncio.to_thread(self._rebuilt, chat, record, shown, frontier_row)
        else:
            notes = _notes(chat, record, self._config.summary_role)
        newest = record.newest_user
        shortened = history.from_portable(record.shortened)
        return ViewState(
            nodes=record.nodes,
            shown=tuple(shown),
            frontier=record.frontier_group,
            frontier_row=frontier_row,
            shortened=shortened,
            newest_user=newest if newest is not None and newest in history.users else None,
            notes=notes,
            pinned=pins_in(history, record.pinned),
            rows_at_compaction=history.row_of(record.rendered_groups),
            compactions=1 if record.nodes or shortened else 0,
        )

    def _rebuilt(
        self, chat: Conversation, record: CompactionRecord, shown: Sequence[ShownNode], frontier_row: int
    ) -> ShownNotes | None:
        """The row of notes of a record that does not keep it, written anew; None where the budget is not known yet."""
        budget = self._own_budget or 0
        room = notes_room(self._config, budget)
        if not room:
            return None
        notes = chat.notes.fresh()
        notes.restore(record.instructions)
        ask = NotesAsk(record.frontier_group, frontier_row, room, self._config.summary_role, budget)
        return notes.write(shown, ask)


def _notes(chat: Conversation, record: CompactionRecord, role: str) -> ShownNotes | None:
    """The row of notes that the record keeps."""
    before = record.nodes[: record.notes_after]
    if not (record.notes and before):
        return None
    row = chat.notes.frame(record.notes, before[-1].end_group, role)
    return replace(row, after=len(before), age=record.notes_age)


def _steered(history: History, marks: SessionMarks | None) -> Steered:
    if marks is None:
        return Steered()
    return Steered(frozenset(pins_in(history, marks.pins)), marks.undone, marks.held_at)


def _is_sound(record: CompactionRecord, history: History) -> bool:
    """Whether a record's nodes tile what lies before its frontier, and the history reaches that far."""
    at = 0
    for node in record.nodes:
        if node.first_group != at or node.end_group <= at:
            return False
        at = node.end_group
    if not record.nodes:
        return record.session is not None and record.frontier_group == 0
    sizes = record.segment_tokens > 0 and record.summary_tokens > 0
    return sizes and 0 < at == record.frontier_group <= len(history.rendered)
