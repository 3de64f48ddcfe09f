"""The records of a session: one for each view that a compaction has made, and where the user has put the session."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Container
from typing import Any

from context_summarize.background import in_thread
from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.nodes import SCHEMA_VERSION
from context_summarize.core.record import Recorded, from_data, to_data
from context_summarize.core.view_state import ViewState
from context_summarize.session.conversation import Conversation, Steered, moved, named
from context_summarize.stores import SummaryStore
from context_summarize.summaries.prompts import PromptSet

_AT_ONCE = 500
"""Hashes that are looked up together: the wanted record is mostly among those of the newest rows."""


class Records:
    """The records of one session in its store.

    Args:
        session_id: the host's; None without one: where the user has put the session is not kept then.
    """

    def __init__(self, store: SummaryStore, prompts: PromptSet, config: Config, session_id: str | None) -> None:
        self._store, self._keep_recent = store, config.keep_recent
        self._writes: set[asyncio.Future[Any]] = set()
        sizes = (config.segment_tokens, config.fan_in, config.redact)
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, str(sizes))
        self._seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        """What a record's hash begins with: summaries of other prompts or settings are not adopted."""
        self._own = None if session_id is None else hashlib.sha256(f"{self._seed}\n{session_id}".encode()).hexdigest()

    async def write(self, chat: Conversation) -> None:
        """Record the view, and where the user has put the session; it is written whoever is cancelled meanwhile."""
        history, steered = chat.history, chat.steered
        found: dict[str, Any] = {}
        if chat.builder.segment_sizes is not None and (hash_ := self.hash_of(history, chat.view)) is not None:
            recorded = Recorded(chat.view, chat.builder.segment_sizes, chat.notes.instructions())
            found[hash_] = to_data(recorded, history)
        if self._own is not None:
            pins = [list(pin) for pin in named(steered.pins, history)]
            found[self._own] = {"pins": pins, "undone": list(steered.undone), "held_at": steered.held_at}
        writing = asyncio.gather(*(self._store.put_record(hash_, data) for hash_, data in found.items()))
        self._writes.add(writing)
        writing.add_done_callback(self._writes.discard)
        await asyncio.shield(writing)

    def hash_of(self, history: History, view: ViewState) -> str | None:
        """The hash of a view's record: of the rows before its frontier, or else up to the last one that is shortened.

        None for a view that shows every row whole.
        """
        last = max((row for row in view.shortened if history.rows[row].rendered), default=-1)
        until = max(view.frontier, history.portable(last, 0)[0] + 1 if last >= 0 else 0)
        return history.running_hash(self._seed, until) if until else None

    async def farthest(self, history: History, before: int | None, undone: Container[str]) -> Recorded | None:
        """What the farthest record keeps that this history begins with.

        Args:
            before: rendered groups; its frontier lies before it.
            undone: hashes of the records that are passed over.
        """
        await in_thread(history.backlog(), history.advance)
        groups = len(history.rendered)
        hashes = (await in_thread(100 * groups, history.running_hashes, self._seed, groups))[::-1]
        for first in range(0, groups, _AT_ONCE):
            some = hashes[first : first + _AT_ONCE]
            records = await self._store.get_records(some)
            for hash_ in some:
                found = from_data(records.get(hash_), history, self._keep_recent) if hash_ not in undone else None
                if found is not None and (before is None or found.view.frontier < before):
                    return found
        return None

    async def steered(self, history: History) -> Steered:
        """Where the user has put this session."""
        found = await self._store.get_records([self._own]) if self._own is not None else {}
        if not found:
            return Steered()
        await in_thread(history.backlog(), history.advance)
        try:
            own = found[self._own or ""]
            return Steered(moved(own["pins"], history), tuple(own["undone"]), own["held_at"])
        except (KeyError, TypeError, ValueError):
            return Steered()  # of another form

    async def close(self) -> None:
        """Wait a little for what is being written."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=0.5)
