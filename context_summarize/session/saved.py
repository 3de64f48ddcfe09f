"""Cuts in the store: each new one is saved; a history that comes back takes up the newest one that fits its rows."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from context_summarize.background import in_thread
from context_summarize.core.cut import Cut, from_data, to_data
from context_summarize.core.log import Log
from context_summarize.core.nodes import SCHEMA_VERSION
from context_summarize.core.parts import parts_of
from context_summarize.summaries.services import Services


class Saved:
    """The cuts of one session in its store. Calls no provider.

    A cut lies under the running hash of the rows that it was made from, and the last two also in the session's own
    record, with its pins. Every hash begins with those of the prompts and of the settings that shape parts.

    Args:
        session_id: the host's id of the session. Without one it has no record of its own.
    """

    def __init__(self, services: Services, session_id: str | None) -> None:
        self._store = services.store
        config, prompts = services.config, services.prompts
        parts = (SCHEMA_VERSION, prompts.segment.hash, prompts.merge.hash, f"{config.segment_tokens} {config.redact}")
        self._seed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        self._role = config.summary_role
        self._own = None if session_id is None else hashlib.sha256(f"{self._seed}\n{session_id}".encode()).hexdigest()
        self._writing: asyncio.Task[None] | None = None
        """The last write. It waits for the one before it, so that no older state overwrites a newer one."""

    def put(self, log: Log, cuts: Sequence[Cut]) -> None:
        """Begins to save the newest of these cuts under its hash, and all with their pins as the session's own."""
        found = dict[str, Any]()
        kept = [cut for cut in cuts if cut.since]
        if kept and not kept[-1].changed_at and (hash_ := self._hash_of(log, kept[-1])) is not None:
            found[hash_] = to_data(kept[-1])
        if self._own is not None:
            own = [[self._hash_of(log, cut), to_data(cut)] for cut in kept]
            found[self._own] = {"cuts": own, "pins": named(cuts[-1].pins, log), "role": self._role if own else ""}
        self._writing = asyncio.create_task(self._put(found, self._writing), name="context-summarize:cut")

    async def _put(self, found: dict[str, Any], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        for hash_, data in found.items():
            is_empty = hash_ == self._own and not any(data.values())
            if not is_empty or await self._store.get_records([hash_]):
                await self._store.put_record(hash_, data)

    async def flush(self) -> None:
        """Waits until all is written. A cancelled caller does not stop the write."""
        if self._writing is not None:
            await asyncio.shield(self._writing)

    def _hash_of(self, log: Log, cut: Cut) -> str | None:
        """Returns the hash of the rows that a cut was made from; None if no group was closed then."""
        groups = log.closed_before(log.row_after_number(cut.since))
        return log.running_hashes(self._seed, groups)[-1] if groups else None

    async def find(self, log: Log) -> tuple[Cut, ...]:
        """Returns the newest cut whose rows a log begins with, and those before it for `undo`; without one, none."""
        hashes = await self._hashes(log)
        record = (await self._store.get_records([self._own])).get(self._own) if self._own is not None else None
        own = record if isinstance(record, dict) else {}
        cuts = await self._own_cuts(own.get("cuts"), log, hashes)
        newer = await self._newest(log, hashes, log.closed_before(log.row_after_number(cuts[-1].since)) if cuts else 0)
        found = cuts if newer is None else (newer,)
        newest = replace(found[-1] if found else Cut(), pins=moved(own.get("pins"), log))
        if newest.since and (newer is not None or own.get("role") != self._role):
            newest = replace(newest, unsent_at=log.rendered_rows)  # its provider may never have got this view
        return (*found[:-1], newest)

    async def before(self, log: Log, cut: Cut) -> Cut:
        """Returns the newest saved cut that was made from fewer rows than this one; without one an empty cut."""
        groups = log.closed_before(log.row_after_number(cut.rows))
        found = await self._newest(log, (await self._hashes(log))[: max(0, groups - 1)], 0)
        return found or Cut()

    async def _own_cuts(self, listed: Any, log: Log, hashes: Sequence[str]) -> tuple[Cut, ...]:
        """Returns the session's own cuts, up to the newest whose rows the log begins with."""
        found, known = list[Cut](), set(hashes)
        for item in listed if isinstance(listed, list) else ():
            is_known = isinstance(item, list) and len(item) == 2 and item[0] in known
            cut = await _cut(item[1], log) if is_known else None
            if cut is None:
                break
            found.append(cut)
        return tuple(found)

    async def _newest(self, log: Log, hashes: Sequence[str], beyond: int) -> Cut | None:
        """Returns the cut that lies under the last of these hashes, but not under the first `beyond`."""
        newest_first = hashes[beyond:][::-1]
        records = await self._store.get_records(newest_first)
        for hash_ in newest_first:
            if (cut := await _cut(records.get(hash_), log)) is not None:
                return cut
        return None

    async def _hashes(self, log: Log) -> list[str]:
        """Returns the running hash after each rendered group."""
        groups = len(log.rendered)
        return await in_thread(log.characters_from(0), log.running_hashes, self._seed, groups)


async def _cut(data: Any, log: Log) -> Cut | None:
    """Returns the cut of these data if a part of the log ends where it ends; a thread reads the log."""
    cut = from_data(data, log.rendered_rows, len(log.rendered))
    if cut is None or not cut.groups:
        return cut
    parts = parts_of(log, cut.ends)
    await in_thread(parts.backlog(), parts.take_in)
    return cut if any(leaf.end_group == cut.groups for leaf in parts.leaves) else None


def named(pins: Iterable[int], log: Log) -> list[list[Any]]:
    """Returns pinned groups by number and hash, so that they are found in an edited history."""
    return [[at, log.hash_of(at).hex()] for at in sorted(pins)]


def moved(pins: Any, log: Log) -> tuple[int, ...]:
    """Returns these pinned groups in this log; those that are gone or changed are left out, as are wrong data."""
    listed = [pin for pin in pins if isinstance(pin, list) and len(pin) == 2] if isinstance(pins, list) else []
    found = {log.find_group(at, str(hash_)) for at, hash_ in listed if isinstance(at, int)}
    return tuple(sorted(at for at in found if at is not None))
