"""The records of compactions: one for each view, and one that a session keeps under its own id."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import replace

from context_summarize.background import advance, in_thread
from context_summarize.config import Config
from context_summarize.core.carrying import span_after, spans_of
from context_summarize.core.history import History
from context_summarize.core.keys import SCHEMA_VERSION
from context_summarize.core.nodes import CompactionRecord, SessionMarks, leaves_of, regular_frontier
from context_summarize.core.view_state import ViewState
from context_summarize.session.conversation import Conversation, Steered
from context_summarize.stores import SummaryStore
from context_summarize.summaries.prompts import PromptSet

_WITH_NOTES = 3
"""Newest records of a session that keep the text of their notes."""


class Records:
    """The records of one session's store.

    Args:
        session_id: the host's; None without one: nothing is kept for the session alone then.
    """

    def __init__(self, store: SummaryStore, prompts: PromptSet, config: Config, session_id: str | None) -> None:
        self._store = store
        self._writes: set[asyncio.Task[None]] = set()
        self._newest: list[CompactionRecord] = []
        """Those written last, with their notes, the oldest first."""
        sizes = (config.segment_tokens, config.fan_in, config.redact)
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, str(sizes))
        self._seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        """What a record's hash begins with: summaries of other prompts or settings are not adopted."""
        self._own = None if session_id is None else hashlib.sha256(f"{self._seed}\n{session_id}".encode()).hexdigest()
        """The hash of the session's own record."""

    # --- writing ----------------------------------------------------------------------------------------------------

    async def write(self, chat: Conversation) -> None:
        """Record the conversation's view; it is written whoever is cancelled meanwhile.

        A view that the user has gone back to is recorded for this session alone.
        """
        found: list[CompactionRecord] = []
        if chat.view.frontier and chat.builder.segment_sizes and chat.steered.held_at is None:
            found += self._with_newest(self._record(chat))
        if self._own is not None and (chat.view.frontier or chat.steered != Steered()):
            found.append(replace(self.trace(chat), hash=self._own))
        for record in found:
            task = asyncio.create_task(self._store.put_record(record), name="context-summarize:record")
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)
            await asyncio.shield(task)

    def _with_newest(self, record: CompactionRecord) -> list[CompactionRecord]:
        """The record; and the one before the newest few, which lets go of its notes: they can be written anew."""
        self._newest = [*(one for one in self._newest if one.hash != record.hash), record]
        older, self._newest = self._newest[:-_WITH_NOTES], self._newest[-_WITH_NOTES:]
        return [record, *(replace(one, notes=None) for one in older)]

    def _record(self, chat: Conversation) -> CompactionRecord:
        history, view, sizes = chat.history, chat.view, chat.builder.segment_sizes or (0, 0)
        return CompactionRecord(
            hash=self.hash_at(history, view.frontier),
            frontier_group=view.frontier,
            rendered_groups=len(history.rendered),
            segment_tokens=sizes[0],
            summary_tokens=sizes[1],
            nodes=view.nodes,
            shortened=tuple(history.portable(index, keep) for index, keep in sorted(view.shortened.items())),
            newest_user=view.newest_user,
            created=time.time(),
            pinned=tuple((at, history.hash_of(at)) for at in view.pinned),
            notes=view.notes.text if view.notes else "",
            notes_after=view.notes.after if view.notes else 0,
            notes_age=view.notes.age if view.notes else 0,
            instructions=chat.notes.instructions(),
            ahead=tuple(chat.builder.carried_ahead(regular_frontier(view.nodes, view.frontier))),
        )

    def trace(self, chat: Conversation, *, ahead: bool = False) -> CompactionRecord:
        """The record of a conversation with what it takes to go on with it in an edited one.

        Args:
            ahead: name all segments that are cut; else those alone whose cuts were carried over an edit.
        """
        record, history, steered = self._record(chat), chat.history, chat.steered
        if ahead:
            leaves = chat.builder.ahead(regular_frontier(record.nodes, record.frontier_group))
            record = replace(record, ahead=tuple(leaves))
        marks = SessionMarks(
            running=record.hash,
            spans=spans_of(history, [*leaves_of(record.nodes), *record.ahead]),
            after=span_after(history, record.frontier_group),
            pins=tuple((at, history.hash_of(at)) for at in sorted(steered.pins)),
            undone=steered.undone,
            held_at=steered.held_at,
        )
        return replace(record, session=marks)

    def left_by(self, chat: Conversation) -> CompactionRecord | None:
        """What an edited history can take over from a conversation; None if there is nothing."""
        has_any = chat.view != ViewState() or chat.builder.leaves or chat.steered != Steered()
        return self.trace(chat, ahead=True) if has_any else chat.before

    # --- reading ----------------------------------------------------------------------------------------------------

    def hash_at(self, history: History, frontier: int) -> str:
        """The hash of the record of a compaction with this frontier."""
        return history.running_hash(self._seed, frontier)

    async def matching(self, history: History) -> list[CompactionRecord]:
        """The records that this history begins with, the longest first."""
        groups = len(history.rendered)
        if groups < 2 or await self._store.is_empty():
            return []
        await advance(history)
        hashes = await in_thread(100 * groups, history.running_hashes, self._seed, groups)
        return await self._store.find_records(hashes[::-1])

    async def of_session(self, history: History) -> CompactionRecord | None:
        """The record that this session keeps under its own id; None without one."""
        if self._own is None or len(history.rendered) < 1 or await self._store.is_empty():
            return None
        found = await self._store.find_records([self._own])
        return found[0] if found and found[0].session is not None else None

    async def close(self) -> None:
        """Wait a little for what is being written."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=0.5)
