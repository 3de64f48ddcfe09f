"""Resuming: compactions are recorded, and found again for a history that begins alike; no provider is asked."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable

from context_summarize.background import in_slices
from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.keys import SCHEMA_VERSION
from context_summarize.core.nodes import CompactionRecord
from context_summarize.core.view_state import ShownActions, ViewState
from context_summarize.session.compaction import Compactor, directives_most
from context_summarize.session.conversation import Conversation, start_segments
from context_summarize.stores.protocol import SummaryStore
from context_summarize.summaries.prompts import PromptSet
from context_summarize.summaries.tasks import SummaryTasks


class Records:
    """The records of one session's store."""

    def __init__(self, store: SummaryStore, prompts: PromptSet, config: Config) -> None:
        self._store = store
        self._writes: set[asyncio.Task[None]] = set()
        sizes = (config.segment_tokens, config.summary_tokens, config.fan_in, config.redact)
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, str(sizes))
        self._seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        """What a record's hash begins with: summaries of other prompts or settings are not adopted."""

    async def write(self, chat: Conversation) -> None:
        """Record the conversation's view; it is written whoever is cancelled meanwhile."""
        record = self._record(chat)
        if record is None:
            return
        task = asyncio.create_task(self._store.put_record(record), name="context-summarize:record")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.shield(task)

    def _record(self, chat: Conversation) -> CompactionRecord | None:
        history, view, sizes = chat.history, chat.view, chat.builder.segment_sizes
        if sizes is None or view.frontier == 0:
            return None
        return CompactionRecord(
            hash=history.running_hash(self._seed, view.frontier),
            frontier_group=view.frontier,
            rendered_groups=len(history.rendered),
            segment_tokens=sizes[0],
            summary_tokens=sizes[1],
            nodes=tuple(shown.node for shown in view.nodes),
            shortened=tuple(history.portable(index, keep) for index, keep in sorted(view.shortened.items())),
            newest_user=view.newest_user,
            created=time.time(),
            actions=view.actions.text if view.actions else "",
        )

    async def matching(self, history: History) -> list[CompactionRecord]:
        """The records that this history begins with, the longest first."""
        groups = len(history.rendered)
        if groups < 2 or await self._store.is_empty():
            return []
        await in_slices(history.hash_groups())
        hashes = await in_slices(history.running_hashes(self._seed, groups))
        return await self._store.find_records(hashes[::-1])

    async def close(self) -> None:
        """Wait a little for what is being written."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=0.5)


class Resumption:
    """Takes up the longest recorded compaction that matches a history."""

    def __init__(self, records: Records, compactor: Compactor, tasks: SummaryTasks, config: Config) -> None:
        self._records = records
        self._compactor = compactor
        self._tasks = tasks
        self._config = config

    async def find(
        self, chat: Conversation, own_budget: int | None, is_current: Callable[[], bool]
    ) -> tuple[CompactionRecord, ViewState] | None:
        """The record and the view that it stands for; None if there is none, or if nobody needs it any more."""
        for record in await self._records.matching(chat.history):
            if not is_current():
                return None
            view = await self._view(chat, record, own_budget)
            if view is not None:
                return record, view
        return None

    def cut(self, chat: Conversation, record: CompactionRecord) -> None:
        """Cut what the record does not cover with the record's sizes."""
        start_segments(chat, record.segment_tokens, record.summary_tokens, self._config.fan_in)

    async def _view(self, chat: Conversation, record: CompactionRecord, own_budget: int | None) -> ViewState | None:
        """The view of a record; a text that is gone becomes a fallback."""
        history = chat.history
        if not _is_sound(record, history):
            return None
        await self._tasks.get(record.nodes, chat.builder, None, None)
        found = self._tasks.rows(record.nodes)
        shown = self._compactor.share_directives(
            chat.builder, found, directives_most(own_budget, record.summary_tokens)
        )
        newest = record.newest_user
        return ViewState(
            nodes=tuple(shown),
            frontier=record.frontier_group,
            frontier_row=history.row_after(record.frontier_group, len(history) - self._config.keep_recent),
            shortened=history.from_portable(record.shortened),
            newest_user=newest if newest is not None and newest in history.users else None,
            actions=_actions(chat, record, self._config.summary_role),
            rows_at_compaction=history.row_of(record.rendered_groups),
            compactions=1,
        )


def _actions(chat: Conversation, record: CompactionRecord, role: str) -> ShownActions | None:
    """The row that the record keeps of what was done."""
    return chat.actions.frame(record.actions, record.frontier_group, role) if record.actions else None


def _is_sound(record: CompactionRecord, history: History) -> bool:
    """Whether a record's nodes tile what lies before its frontier, and the history reaches that far."""
    at = 0
    for node in record.nodes:
        if node.first_group != at or node.end_group <= at:
            return False
        at = node.end_group
    sizes = record.segment_tokens > 0 and record.summary_tokens > 0
    return sizes and 0 < at == record.frontier_group <= len(history.rendered)
