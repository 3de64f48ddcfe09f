"""`SqliteStore`: summaries and records in a file of the user, read and written by one thread."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.errors import StoreUnavailable
from context_summarize.stores.sqlite_entries import DAY, Entries, StoreStatistics
from context_summarize.stores.sqlite_file import SqliteFile
from context_summarize.stores.sqlite_listing import Listing

logger = logging.getLogger(__name__)

T = TypeVar("T")


def default_path() -> Path:
    """`context-summarize/summaries.sqlite3` in the user's Amplifier folder: `AMPLIFIER_HOME`, else `~/.amplifier`.

    `amplifier update --force` and `amplifier reset` clear `cache/` there, and leave this folder alone.

    Raises:
        StoreUnavailable: the user has no home folder.
    """
    return _amplifier_folder() / "context-summarize" / "summaries.sqlite3"


def earlier_path() -> Path:
    """Where earlier releases kept the same file.

    Raises:
        StoreUnavailable: the user has no home folder.
    """
    return _amplifier_folder() / "cache" / "context-summarize.sqlite3"


def _amplifier_folder() -> Path:
    try:
        return Path(os.environ.get("AMPLIFIER_HOME") or "~/.amplifier").expanduser()
    except RuntimeError as error:
        raise StoreUnavailable(
            f"no folder for the summary store: {error}; set AMPLIFIER_HOME or HOME, or name a file in `cache`"
        ) from None


class SqliteStore:
    """A store in a file that several processes may share, bounded in bytes and age.

    The first call opens the file; the first put creates it where it does not exist. A thread of the store does all
    work, one call after the other, so that the event loop never waits for the disk. When a caller is cancelled, its
    call is done or not done, but never half done. Every method raises `StoreUnavailable` where the file cannot be read
    or written; the next call opens it again.

    Args:
        path: the file; its folder is made when it does not exist.
        max_bytes: bound of the file's pages in use; the least recently used entries go first.
        max_age_days: entries that nobody has used for so long are deleted.
        busy_seconds: how long a call waits for another process that holds the file.
        now: seconds since the epoch.
        earlier: where earlier releases kept the file; the first use takes over what is there.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 256 * 1024 * 1024,
        max_age_days: float = 90.0,
        busy_seconds: float = 2.0,
        now: Callable[[], float] = time.time,
        earlier: Path | None = None,
    ) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_age = max_age_days * DAY
        self._busy_seconds = busy_seconds
        self._now = now
        self._earlier = earlier
        self._open: tuple[ThreadPoolExecutor, Entries] | None = None

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        return await self._run(lambda entries: entries.summaries(keys))

    async def put(self, summary: Summary) -> None:
        """Keep one summary; an entry of the same key is replaced.

        Raises:
            ValueError: it is a fallback summary.
        """
        if summary.fallback:
            raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")
        await self._run(lambda entries: entries.put_summary(summary))

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The records with one of these running hashes, in the order given; the first `MOST_RECORDS` of them."""
        return await self._run(lambda entries: entries.find(hashes))

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record; an earlier one of the same hash is replaced."""
        await self._run(lambda entries: entries.put_record(record))

    async def is_empty(self) -> bool:
        """True while there is no record of a compaction."""
        return await self._run(lambda entries: entries.is_empty())

    async def statistics(self) -> StoreStatistics:
        """What the file holds; zeros where there is no file."""
        return await self._run(lambda entries: entries.statistics())

    async def listing(self) -> Listing:
        """What the file holds, by session; nothing where there is no file."""
        return await self._run(lambda entries: entries.listing())

    async def clear(self) -> int:
        """Remove every entry and give the space back to the disk. Returns the number of entries removed."""
        return await self._run(lambda entries: entries.clear())

    async def close(self) -> None:
        """Finish the calls under way, close the file and end the thread. A later call opens it again."""
        if self._open is None:
            return
        executor, entries = self._open
        self._open = None
        done = executor.submit(entries.run, Entries.close)
        executor.shutdown(wait=False)  # submitted work is still done
        await asyncio.shield(asyncio.wrap_future(done))

    async def _run(self, work: Callable[[Entries], T]) -> T:
        if self._open is None:
            file = SqliteFile(self.path, self._busy_seconds, self._earlier)
            entries = Entries(file, self._max_bytes, self._max_age, self._now)
            self._open = ThreadPoolExecutor(1, "context-summarize-store"), entries
        executor, entries = self._open
        return await asyncio.wrap_future(executor.submit(entries.run, work))
