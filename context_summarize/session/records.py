"""The records of a session's views: each change writes one, and a resumed history looks for one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Container
from dataclasses import replace
from typing import Any

from context_summarize.background import in_thread
from context_summarize.core.frames import show_node, show_thread
from context_summarize.core.log import Log
from context_summarize.core.nodes import SCHEMA_VERSION, View
from context_summarize.core.record_format import Recorded, from_data, to_data
from context_summarize.core.render import head
from context_summarize.messages.rows import JsonRow, compact_json
from context_summarize.session.conversation import Conversation, Steered, moved, named
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

_AT_ONCE = 500
"""Hashes that are looked up together. The wanted record is mostly among the newest ones."""


class Records:
    """Writes the records of one session, and finds the one that it resumes from. Calls no provider.

    Args:
        session_id: the host's id of the session. Without one the user's changes (`Steered`) are not kept.
    """

    def __init__(self, services: Services, summaries: SummaryRegistry, session_id: str | None) -> None:
        self._store, self._summaries = services.store, summaries
        self._writing: asyncio.Task[None] | None = None
        """The last write. It waits for the one before it, so that no older state overwrites a newer one."""
        config, prompts = services.config, services.prompts
        self._frame = prompts.frame.fill
        self._keep_recent = config.keep_recent
        sizes = (config.segment_tokens, config.fan_in, config.redact)
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, str(sizes))
        self._seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        """Every hash begins with it, so that a session adopts no record of other prompts or settings."""
        self._own = None if session_id is None else hashlib.sha256(f"{self._seed}\n{session_id}".encode()).hexdigest()

    async def write(self, chat: Conversation, *, is_new: bool = True) -> None:
        """Writes the view's record and the session's own record. A cancelled caller does not stop the write.

        Args:
            is_new: False if the view comes from a record, which is then not written again.
        """
        log, steered = chat.log, chat.steered
        found, view = dict[str, Any](), None
        if chat.segments is not None:
            view = to_data(chat.view, chat.segments.cutting.sizes, log)
            if is_new and (hash_ := self.hash_of(log, chat.view)) is not None:
                found[hash_] = view
        has_changed = _until(log, chat.view) > 0 or steered != Steered()
        if self._own is not None and (has_changed or await self._store.get_records([self._own])):
            pins, rows = [list(pin) for pin in named(steered.pins, log)], len(log.rendered)
            shown = {"of": log.running_hash(self._seed, rows) if rows else None, "view": view}
            shown["sent"] = _hash_of_head(log, chat.view)
            found[self._own] = {"pins": pins, "undone": list(steered.undone), "undone_at": steered.undone_at, **shown}
        self._writing = asyncio.create_task(self._put(found, self._writing), name="context-summarize:record")
        await asyncio.shield(self._writing)

    async def _put(self, found: dict[str, Any], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        for hash_, data in found.items():
            await self._store.put_record(hash_, data)

    def hash_of(self, log: Log, view: View) -> str | None:
        """Returns the hash of a view's record; None for a view that shows every row whole.

        It covers all rows up to the last one that the view summarises or shortens.
        """
        until = _until(log, view)
        return log.running_hash(self._seed, until) if until else None

    async def close(self) -> None:
        """Waits for the last write, at most half a second."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=0.5)

    async def resume(self, chat: Conversation) -> tuple[Recorded | None, Steered, bool]:
        """Returns the record to resume from, or None; the user's changes; and True if the own record must be written.

        1. If the history begins with all rows that the session had, it resumes from the session's own record. If that
           has no view, it resumes from none.
        2. Another history, such as a rewound one, resumes from the farthest record whose rows it begins with.

        The view begins with this resume if its provider may never have got it: in case 2, and if its rows are others.
        """
        own = (await self._store.get_records([self._own])).get(self._own) if self._own is not None else None
        own = own if isinstance(own, dict) else None  # a user's own store may return anything
        hashes = await self._hashes(chat.log)
        steered = _steered(own, chat.log) if own and chat.steered == Steered() else chat.steered
        if own and own.get("of") in hashes:
            found = from_data(own.get("view"), chat.log, self._keep_recent)
            if found is not None:
                resumed = await self._shown(chat, found)
                was_sent = own.get("sent") == _hash_of_head(chat.log, resumed.view)
                return resumed if was_sent else _unsent(resumed, chat.log), steered, not was_sent
            if own.get("view") is None:
                return None, steered, False
        found = await self._farthest(chat, hashes, steered.undone)
        found = found and _unsent(found, chat.log)
        return found, steered, own is not None or found is not None

    async def earlier(self, chat: Conversation) -> View:
        """Returns the view before the last compaction, from its record: a new process has no other source."""
        hashes = (await self._hashes(chat.log))[: _until(chat.log, chat.view)]
        found = await self._farthest(chat, hashes, {*chat.steered.undone, *hashes[-1:]})
        return found.view if found else View()

    def undone(self, chat: Conversation, earlier: View) -> tuple[str, ...]:
        """Returns the hashes of the records that the session ignores once it is back at the earlier view."""
        taken_back = self.hash_of(chat.log, chat.view)
        if taken_back is None or taken_back == self.hash_of(chat.log, earlier):
            return chat.steered.undone  # the earlier view has the same record
        return (*chat.steered.undone, taken_back)

    async def _hashes(self, log: Log) -> list[str]:
        """Returns the running hash after each rendered group."""
        groups = len(log.rendered)
        return await in_thread(log.characters_from(0), log.running_hashes, self._seed, groups)

    async def _farthest(self, chat: Conversation, hashes: list[str], undone: Container[str]) -> Recorded | None:
        """Returns the farthest record that has one of these hashes and is not undone; None without one."""
        for end in range(len(hashes), 0, -_AT_ONCE):
            newest_first = hashes[max(0, end - _AT_ONCE) : end][::-1]
            records = await self._store.get_records(newest_first)
            for hash_ in newest_first:
                if hash_ not in records or hash_ in undone:
                    continue
                found = from_data(records[hash_], chat.log, self._keep_recent)
                if found is not None:
                    return await self._shown(chat, found)
        return None

    async def _shown(self, chat: Conversation, found: Recorded) -> Recorded:
        """Returns the record with the rows of its view; a fallback replaces a text that is gone."""
        view, notes, log = found.view, found.view.notes, chat.log
        shown = await self._summaries.fill_in(view.nodes, log)
        for at, text in found.cut.items():
            if at < len(shown) and not shown[at].summary.fallback:
                node, summary = shown[at].node, shown[at].summary
                shown[at] = show_node(log, node, summary, self._frame, text)
        if notes is not None:
            notes = show_thread(log, notes.text, view.frontier)
        return replace(found, view=replace(view, shown=tuple(shown), notes=notes))


def _hash_of_head(log: Log, view: View) -> str:
    """Returns the hash of what a request shows before its verbatim part."""
    shown = [[entry.row["role"], entry.row["content"]] for entry in head(log, view)]
    return hashlib.sha256(compact_json(shown).encode("utf-8", "surrogatepass")).hexdigest()


def _unsent(found: Recorded, log: Log) -> Recorded:
    """Returns the record with a view that begins now."""
    return replace(found, view=replace(found.view, rows_at_resume=len(log)))


def _until(log: Log, view: View) -> int:
    """Returns how many rendered groups a view's record covers: up to the last one summarised or shortened."""
    last = max((number for row in view.shortened if (number := log.number_of(row))), default=0)
    group = log.group_of_message(min(last, log.closed_rendered_rows))
    return max(view.frontier, 0 if group is None else group + 1)


def _steered(own: JsonRow, log: Log) -> Steered:
    try:
        at = None if own["undone_at"] is None else int(own["undone_at"])
        return Steered(moved(own["pins"], log), tuple(map(str, own["undone"])), at)
    except (KeyError, TypeError, ValueError):
        return Steered()  # the record has another form
