"""The store in a file: when the file is made, who may read it, and the one thread that uses it."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.sqlite import SqliteStore, default_path
from context_summarize.stores.sqlite_entries import StoreStatistics
from tests.unit.stores.sqlite.support import CALLS, Clock, content, database, files
from tests.unit.stores.values import record, summary


class TestOpening:
    async def test_nothing_is_opened_before_something_is_kept(self, store: SqliteStore, path: Path) -> None:
        """Neither the making of a store nor reading leaves a file, a folder or a thread behind."""
        before = threading.active_count()
        assert SqliteStore(path).path == path
        assert threading.active_count() == before
        assert await store.get(["a"]) == {}
        assert await store.find_records(["d"]) == []
        assert await store.is_empty()
        assert await store.clear() == 0
        assert await store.statistics() == StoreStatistics(path, 0, 0, 0, None, None, 0, 0)
        assert files(path.parent) == {}
        await store.put(summary("a"))
        assert path.name in files(path)

    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o277, 0o777])
    async def test_only_the_owner_may_read_the_files(self, store: SqliteStore, path: Path, umask: int) -> None:
        """Whatever the umask; the write-ahead log holds the same words as the file."""
        before = os.umask(umask)
        try:
            await store.put(summary("a"))
        finally:
            os.umask(before)
        assert files(path) == {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        await store.close()
        assert files(path) == {path.name: 0o600}

    async def test_a_file_that_all_may_read_is_made_private(self, store: SqliteStore, path: Path) -> None:
        """A copy from elsewhere; the folder that was there keeps its mode."""
        await store.put(summary("a"))
        await store.close()
        os.chmod(path, 0o644)  # noqa: PTH101
        os.chmod(path.parent, 0o755)  # noqa: PTH101
        assert (await store.get(["a"])).keys() == {"a"}
        assert set(files(path).values()) == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755

    async def test_entries_outlive_the_store(self, store: SqliteStore, path: Path) -> None:
        """Another store on the same file finds them, at the same time and later."""
        await store.put(summary("a"))
        await store.put_record(record("d"))
        for _ in range(2):
            other = SqliteStore(path)
            assert await other.get(["a"]) == {"a": summary("a")}
            assert await other.find_records(["d"]) == [record("d")]
            await other.close()
            await store.close()

    async def test_two_stores_of_one_process_share_a_file(self, store: SqliteStore, path: Path) -> None:
        """Sub-sessions do; closing the one leaves the other at work."""
        one, other = SqliteStore(path, busy_seconds=30), SqliteStore(path, busy_seconds=30)
        await asyncio.gather(one.put(summary("a")), other.put(summary("b")))
        await other.close()
        await one.put(summary("c"))
        assert (await store.get(["a", "b", "c"])).keys() == {"a", "b", "c"}
        await one.close()

    async def test_a_file_in_use_is_waited_for_before_it_is_written_ahead(self, path: Path, no_hang: None) -> None:
        """SQLite itself does not wait for another writer there, which two processes that make the file run into."""
        store = SqliteStore(path, busy_seconds=50)
        await store.put(summary("a"))
        await store.close()
        with database(path) as other:
            other.execute("PRAGMA journal_mode = DELETE")
            other.execute("BEGIN IMMEDIATE")
            put = asyncio.create_task(store.put(summary("b")))
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert not put.done()
            other.execute("COMMIT")
            await put
            assert content(path)[18:20] == b"\x02\x02"  # the file's header: written ahead, and read so
        assert (await store.get(["a", "b"])).keys() == {"a", "b"}
        await store.close()

    def test_a_store_serves_one_event_loop_after_another(self, path: Path, no_hang: None) -> None:
        """Nothing of the first loop is kept."""
        store = SqliteStore(path)
        asyncio.run(store.put(summary("a")))
        assert asyncio.run(store.get(["a"])) == {"a": summary("a")}
        asyncio.run(store.close())

    def test_the_file_stands_in_the_amplifier_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Where the host's other files are."""
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("AMPLIFIER_HOME", raising=False)
        assert default_path() == tmp_path / ".amplifier" / "context-summarize" / "summaries.sqlite3"
        monkeypatch.setenv("AMPLIFIER_HOME", "~/elsewhere")
        assert default_path() == tmp_path / "elsewhere" / "context-summarize" / "summaries.sqlite3"

    def test_a_user_without_home_is_told_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As one error, like any other trouble of the store."""
        monkeypatch.setenv("AMPLIFIER_HOME", "~nobody-of-this-name/x")
        with pytest.raises(StoreUnavailable, match="set AMPLIFIER_HOME or HOME, or name a file in `cache`"):
            default_path()


class TestThread:
    async def test_all_work_is_done_on_one_thread_of_its_own(self, store: SqliteStore, clock: Clock) -> None:
        """SQLite refuses any other thread than the one that opened the file; closing ends it."""
        before = set(threading.enumerate())
        for call in CALLS.values():
            await call(store)  # type: ignore[misc]
        (name,) = clock.threads
        assert name != threading.current_thread().name
        (thread,) = set(threading.enumerate()) - before
        assert thread.name == name
        await store.close()
        thread.join(10)
        assert not thread.is_alive()

    async def test_the_event_loop_goes_on_while_the_file_is_waited_for(self, path: Path, no_hang: None) -> None:
        """The wait ends when this very loop releases the file."""
        store = SqliteStore(path, busy_seconds=50)
        await store.put(summary("a"))
        with database(path) as other:
            other.execute("BEGIN IMMEDIATE")
            put = asyncio.create_task(store.put(summary("b")))
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert not put.done()
            other.execute("COMMIT")
            await put
        assert (await store.get(["b"])).keys() == {"b"}
        await store.close()

    async def test_closing_goes_on_when_its_caller_is_cancelled(self, store: SqliteStore, path: Path) -> None:
        """The file is let go of all the same, after what was asked before."""
        before = set(threading.enumerate())
        put = asyncio.create_task(store.put(summary("a")))
        await asyncio.sleep(0)
        (thread,) = set(threading.enumerate()) - before
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(put, closing, return_exceptions=True)
        await asyncio.to_thread(thread.join, 10)
        assert files(path) == {path.name: 0o600}
        assert (await store.get(["a"])).keys() == {"a"}
