"""Resuming: the view of a recorded compaction is found again; no provider is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from context_summarize.core.frames import show_one_line
from context_summarize.core.record import Recorded
from context_summarize.core.view_state import ViewState
from context_summarize.session.conversation import Conversation, Steered
from context_summarize.session.records import Records
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.tokens.measure import Count


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a conversation goes on with."""

    view: ViewState
    steered: Steered
    sizes: tuple[int, int] | None = None
    """Segment sizes in force; None without a compaction."""


class Resumption:
    """Takes up the farthest recorded compaction that matches a history."""

    def __init__(self, records: Records, tasks: SummaryRegistry, count: Count) -> None:
        self._records = records
        self._tasks = tasks
        self._count = count

    async def find(self, chat: Conversation) -> Resumed:
        """What the conversation goes on with."""
        steered = chat.steered if chat.steered != Steered() else await self._records.steered(chat.history)
        found = await self._records.farthest(chat.history, None, steered.undone)
        if found is None:
            return Resumed(chat.view, steered)
        return Resumed(await self._shown(chat, found), steered, found.sizes)

    async def earlier(self, chat: Conversation) -> ViewState:
        """The view before the last compaction, as the records have it: after a restart, nothing else knows it."""
        found = await self._records.farthest(chat.history, chat.view.frontier, chat.steered.undone)
        return ViewState() if found is None else await self._shown(chat, found)

    def undone(self, chat: Conversation, earlier: ViewState) -> tuple[str, ...]:
        """The hashes of the records that the session passes over once it has gone back to the earlier view."""
        taken_back = self._records.hash_of(chat.history, chat.view)
        if taken_back is None or taken_back == self._records.hash_of(chat.history, earlier):
            return chat.steered.undone  # the earlier view's record takes its place
        return (*chat.steered.undone, taken_back)

    async def _shown(self, chat: Conversation, found: Recorded) -> ViewState:
        """The view with its rows; a text that is gone becomes a fallback."""
        view, notes = found.view, found.view.notes
        await self._tasks.place(view.nodes, chat.builder)
        shown = self._tasks.rows(view.nodes)
        lines = [show_one_line(chat.history, one, self._count) for one in shown[: view.lines]]
        chat.notes.restore(found.places)
        if notes is not None:
            row = chat.notes.frame(notes.text, view.nodes[notes.after - 1].end_group)
            notes = replace(row, after=notes.after, age=notes.age)
        return replace(view, shown=(*lines, *shown[view.lines :]), notes=notes)
