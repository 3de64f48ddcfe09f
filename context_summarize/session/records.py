"""The records of compactions: one for each view, and one that a session keeps under its own id."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import replace

from context_summarize.background import in_thread
from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.nodes import SCHEMA_VERSION, CompactionRecord, SessionMarks
from context_summarize.core.view_state import ViewState
from context_summarize.session.conversation import Conversation, Steered, moved, named
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
        """Record the view, and where the user has put the session; it is written whoever is cancelled meanwhile."""
        found: list[CompactionRecord] = []
        if (hash_ := self.hash_of(chat.history, chat.view)) is not None:
            found += self._with_newest(_record(chat, hash_))
        if self._own is not None:
            found.append(CompactionRecord(self._own, 0, 0, 0, 0, (), session=_marks(chat)))
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

    # --- reading ----------------------------------------------------------------------------------------------------

    def hash_of(self, history: History, view: ViewState) -> str | None:
        """The hash of the record of a view: of all rows that it speaks of; None where it shows every row whole."""
        last = max((row for row in view.shortened if history.rows[row].rendered), default=-1)
        until = view.frontier or history.portable(last, 0)[0] + 1
        return history.running_hash(self._seed, until) if until else None

    async def matching(self, history: History) -> list[CompactionRecord]:
        """The records that this history begins with, the longest first."""
        groups = len(history.rendered)
        if groups < 2 or await self._store.is_empty():
            return []
        await in_thread(history.backlog(), history.advance)
        hashes = await in_thread(100 * groups, history.running_hashes, self._seed, groups)
        return await self._store.find_records(hashes[::-1])

    async def steered(self, history: History) -> Steered:
        """Where the user has put this session."""
        if self._own is None or await self._store.is_empty():
            return Steered()
        found = await self._store.find_records([self._own])
        marks = found[0].session if found else None
        if marks is None:
            return Steered()
        await in_thread(history.backlog(), history.advance)
        return Steered(moved(marks.pins, history), marks.undone, marks.held_at)

    async def close(self) -> None:
        """Wait a little for what is being written."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=0.5)


def _record(chat: Conversation, hash_: str) -> CompactionRecord:
    history, view, sizes = chat.history, chat.view, chat.builder.segment_sizes or (0, 0)
    last = history.message_range(0, view.frontier)[1] if view.frontier else 0
    return CompactionRecord(
        hash=hash_,
        frontier_group=view.frontier,
        rendered_groups=len(history.rendered),
        segment_tokens=sizes[0],
        summary_tokens=sizes[1],
        nodes=view.nodes,
        shortened=tuple(history.portable(index, keep) for index, keep in sorted(view.shortened.items())),
        newest_user=view.newest_user,
        created=time.time(),
        pinned=view.pinned,
        notes=view.notes.text if view.notes else "",
        notes_after=view.notes.after if view.notes else 0,
        notes_age=view.notes.age if view.notes else 0,
        instructions=tuple(place for place in chat.notes.instructions() if place[0] <= last),
    )


def _marks(chat: Conversation) -> SessionMarks:
    steered = chat.steered
    return SessionMarks(named(steered.pins, chat.history), steered.undone, steered.held_at)
