"""Resuming: a recorded compaction is found again; no provider is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.nodes import CompactionRecord
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


class Resumption:
    """Takes up the longest recorded compaction that matches a history."""

    def __init__(self, records: Records, tasks: SummaryRegistry, config: Config) -> None:
        self._records = records
        self._tasks = tasks
        self._config = config
        self._own_budget: int | None = None
        """Of the last request; a status line may ask before the next one."""

    async def find(self, chat: Conversation, own_budget: int | None, is_current: Callable[[], bool]) -> Resumed | None:
        """What the conversation goes on with; None if nobody needs it any more."""
        self._own_budget = own_budget or self._own_budget
        steered = chat.steered if chat.steered != Steered() else await self._records.steered(chat.history)
        for record in await self._records.matching(chat.history):
            if not is_current():
                return None
            is_wanted = record.hash not in steered.undone and self._leaves_enough(record, chat.history)
            view = await self._view(chat, record) if is_wanted else None
            if view is not None:
                return Resumed(record, view, steered)
        return Resumed(None, chat.view, steered)

    def _leaves_enough(self, record: CompactionRecord, history: History) -> bool:
        """False for a record of a longer history that leaves fewer than `keep_recent` rows of this one verbatim."""
        is_rewound = len(history.rendered) < record.rendered_groups
        return not is_rewound or record.frontier_group <= history.summarisable(self._config.keep_recent)

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
        taken_back = self._records.hash_of(chat.history, chat.view)
        if taken_back is None or taken_back == self._records.hash_of(chat.history, earlier):
            return chat.steered.undone
        return (*chat.steered.undone, taken_back)

    def cut(self, chat: Conversation, record: CompactionRecord) -> None:
        """Cut what the record does not cover with the record's sizes."""
        if record.segment_tokens > 0 and record.summary_tokens > 0:
            start_segments(chat, record.segment_tokens, record.summary_tokens, self._config.fan_in)

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
            notes = _notes(chat, record, "system")
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
            pinned=record.pinned,
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
        ask = NotesAsk(record.frontier_group, frontier_row, room, "system", budget)
        return notes.write(shown, ask)


def _notes(chat: Conversation, record: CompactionRecord, role: str) -> ShownNotes | None:
    """The row of notes that the record keeps."""
    before = record.nodes[: record.notes_after]
    if not (record.notes and before):
        return None
    row = chat.notes.frame(record.notes, before[-1].end_group, role)
    return replace(row, after=len(before), age=record.notes_age)


def _is_sound(record: CompactionRecord, history: History) -> bool:
    """Whether a record's nodes tile what lies before its frontier, and the history reaches that far."""
    at = 0
    for node in record.nodes:
        if node.first_group != at or node.end_group <= at:
            return False
        at = node.end_group
    sizes = record.segment_tokens > 0 and record.summary_tokens > 0
    return sizes and at == record.frontier_group <= len(history.rendered)
