"""What is special about the store in a file: one thread, private files, bounds, damage, processes, sudden death."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.codec import FORMAT
from context_summarize.stores.sqlite import SqliteStore, default_path
from context_summarize.stores.sqlite_entries import MOST_RECORDS, StoreStatistics
from context_summarize.stores.sqlite_file import SCHEMA_VERSION
from tests.contracts import test_stores as contract
from tests.contracts.factories import record, summary

HOUR = 3_600.0
DAY = 24 * HOUR


class Clock:
    """Moves when it is told, and knows on which threads it was read."""

    def __init__(self) -> None:
        self.time = 1_000_000_000.0
        self.threads: set[str] = set()

    def __call__(self) -> float:
        self.threads.add(threading.current_thread().name)
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "store.sqlite3"


@pytest.fixture
async def store(path: Path, clock: Clock, no_hang: None) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path, now=clock, busy_seconds=0.05)
    yield made
    await made.close()


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as another program sees it; every statement is committed at once."""
    path.parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        yield connection
    finally:
        connection.close()


def files(path: Path) -> dict[str, int]:
    """Name → permission bits of all that stands beside a path."""
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}


def content(path: Path) -> bytes:
    return path.read_bytes()


def fill(path: Path, data: bytes | bytearray) -> None:
    """A file of this content and nothing beside it."""
    path.parent.mkdir(exist_ok=True)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(data)


CALLS: dict[str, Callable[[SqliteStore], object]] = {
    "get": lambda store: store.get(["a"]),
    "put": lambda store: store.put(summary("a")),
    "find_boundary": lambda store: store.find_records(["d"]),
    "put_boundary": lambda store: store.put_record(record("d")),
    "is_empty": lambda store: store.is_empty(),
    "statistics": lambda store: store.statistics(),
    "clear": lambda store: store.clear(),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


class TestOtherFormatsInAFile(contract.OtherFormats):
    pass


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
        assert default_path() == tmp_path / ".amplifier" / "cache" / "context-summarize.sqlite3"
        monkeypatch.setenv("AMPLIFIER_HOME", "~/elsewhere")
        assert default_path() == tmp_path / "elsewhere" / "cache" / "context-summarize.sqlite3"

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
        """The wait ends when this very loop lets go of the file."""
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


class TestBounds:
    async def test_the_least_recently_used_go_first(self, path: Path, clock: Clock) -> None:
        """The bound is in bytes on disk, and reading counts as use."""
        store = SqliteStore(path, max_bytes=400_000, now=clock)
        keys = [f"k{index:02}" for index in range(45)]
        for key in keys[:30]:
            await store.put(summary(key, "x" * 10_000))
            clock.time += HOUR
        await store.get(keys[:5])
        for key in keys[30:]:
            clock.time += 1
            await store.put(summary(key, "x" * 10_000))
        kept = sorted(await store.get(keys))
        assert kept[:5] == keys[:5]
        assert kept[5:] == keys[-len(kept[5:]) :]
        assert 25 < len(kept) < 40
        await store.close()
        assert len(content(path)) <= 430_000

    async def test_a_record_counts_and_goes_like_a_summary(self, path: Path, clock: Clock) -> None:
        """One order for both."""
        store = SqliteStore(path, max_bytes=200_000, now=clock)
        await store.put_record(record("old"))
        clock.time += 1
        await store.put_record(record("young"))
        for index in range(30):
            clock.time += 1
            await store.put(summary(f"k{index}", "x" * 10_000))
        assert await store.is_empty()
        await store.put_record(record("new"))
        assert await store.find_records(["new", "young", "old"]) == [record("new")]
        await store.close()

    async def test_what_is_longer_than_the_whole_store_is_not_kept(self, path: Path) -> None:
        """It is no error, and pushes nothing out."""
        store = SqliteStore(path, max_bytes=200_000)
        await store.put(summary("a"))
        await store.put(summary("b", "x" * 200_000))
        assert (await store.get(["a", "b"])).keys() == {"a"}
        await store.close()

    async def test_a_bound_below_an_empty_file_keeps_nothing(self, path: Path, no_hang: None) -> None:
        """A put ends all the same."""
        store = SqliteStore(path, max_bytes=8_192)
        await store.put(summary("a"))
        assert await store.get(["a"]) == {}
        await store.close()

    async def test_entries_that_nobody_used_for_long_go(self, store: SqliteStore, clock: Clock) -> None:
        """A session that is resumed after months pays again; one in use keeps all, however old."""
        await store.put(summary("forgotten"))
        await store.put_record(record("forgotten"))
        await store.put(summary("used"))
        clock.time += 80 * DAY
        await store.get(["used"])
        await store.close()
        clock.time += 11 * DAY
        await store.put(summary("new"))
        assert (await store.get(["forgotten", "used", "new"])).keys() == {"used", "new"}
        assert await store.is_empty()

    async def test_reading_writes_nothing(self, store: SqliteStore, path: Path, clock: Clock) -> None:
        """Stamps wait for the next write or the end: a session that only resumes does not wait for others."""
        await store.put(summary("a"))
        clock.time += 2 * HOUR
        with database(path) as other:
            other.execute("BEGIN IMMEDIATE")
            assert (await store.get(["a"])).keys() == {"a"}
            assert other.execute("SELECT used FROM entries").fetchall() == [(clock.time - 2 * HOUR,)]
            other.execute("COMMIT")
            await store.put(summary("b"))
            assert other.execute("SELECT DISTINCT used FROM entries").fetchall() == [(clock.time,)]

    async def test_what_was_used_within_the_hour_is_not_stamped_again(
        self, store: SqliteStore, path: Path, clock: Clock
    ) -> None:
        """The order of eviction need not be finer, and each stamp is a page written."""
        await store.put(summary("a"))
        clock.time += HOUR / 2
        await store.get(["a"])
        await store.put(summary("b"))
        with database(path) as other:
            used = other.execute("SELECT used FROM entries ORDER BY key").fetchall()
        assert used == [(clock.time - HOUR / 2,), (clock.time,)]

    async def test_a_store_that_cannot_stamp_closes_all_the_same(
        self, store: SqliteStore, path: Path, clock: Clock
    ) -> None:
        """The order of eviction is not worth an error at a session's end."""
        await store.put(summary("a"))
        clock.time += 2 * HOUR
        await store.get(["a"])
        with database(path) as other:
            other.execute("BEGIN IMMEDIATE")
            await store.close()
        assert (await store.get(["a"])).keys() == {"a"}

    async def test_no_more_records_are_read_than_are_of_use(self, store: SqliteStore) -> None:
        """A session of days has hundreds, each with a whole tree in it, and one of them is adopted."""
        digests = [f"d{index}" for index in range(MOST_RECORDS + 2)]
        for digest in digests:
            await store.put_record(record(digest))
        assert await store.find_records(digests) == [record(digest) for digest in digests[:MOST_RECORDS]]


class TestTidying:
    async def test_statistics_tell_what_is_kept(self, store: SqliteStore, path: Path) -> None:
        """For people who ask what the file is good for."""
        await store.put(summary("a"))
        await store.put(summary("b"))
        await store.put_record(record("d"))
        found = await store.statistics()
        assert found == StoreStatistics(path, found.bytes, 2, 1, 1.5, 2.5, 10, 100)
        assert found.bytes == sum(path.with_name(path.name + end).stat().st_size for end in ("", "-wal"))

    async def test_clearing_removes_all_and_gives_the_space_back(self, store: SqliteStore, path: Path) -> None:
        """And the store goes on."""
        for index in range(50):
            await store.put(summary(f"k{index}", "secret plans " * 1_000))
        await store.put_record(record("d"))
        assert await store.clear() == 51
        assert await store.is_empty()
        assert (await store.statistics()).bytes < 50_000
        assert b"secret plans" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
        await store.put(summary("a"))
        assert (await store.get(["a"])).keys() == {"a"}


class TestTrouble:
    @every_call
    async def test_random_bytes_are_no_store(self, store: SqliteStore, path: Path, call) -> None:
        """The error names the file and says what to do; the file is left as it is."""
        noise = random.Random(1).randbytes(20_000)
        fill(path, noise)
        with pytest.raises(StoreUnavailable, match=r"store\.sqlite3: file is not a database; .* no store of summaries"):
            await call(store)
        assert content(path) == noise

    @every_call
    async def test_a_file_of_another_kind_is_not_to_be_removed(self, store: SqliteStore, path: Path, call) -> None:
        """A history that was named by mistake holds what cannot be made again."""
        fill(path, b'{"role": "user", "content": "hello"}\n' * 100)
        with pytest.raises(StoreUnavailable) as told:
            await call(store)
        remedy = str(told.value).rpartition("database; ")[2]
        assert remedy == "the file is no store of summaries; name another one in `cache`"

    @every_call
    async def test_a_file_that_was_cut_off_is_no_store(self, store: SqliteStore, path: Path, call) -> None:
        """Once it is deleted, the same store works again."""
        for index in range(50):
            await store.put(summary(f"k{index}", "x" * 3_000))
        await store.close()
        whole = content(path)
        fill(path, whole[: len(whole) // 2])
        with pytest.raises(StoreUnavailable, match=r"malformed; the file is damaged; delete it: summaries"):
            await call(store)
        os.unlink(path)  # noqa: PTH108
        await call(store)

    async def test_damage_anywhere_in_the_file_gives_one_error_or_fewer_entries(
        self, store: SqliteStore, path: Path
    ) -> None:
        """Never another exception, and never a value that is none."""
        keys = [f"k{index}" for index in range(40)]
        for key in keys:
            await store.put(summary(key, f"text of {key}" * 20))
            await store.put_record(record(key))
        await store.close()
        whole = content(path)
        trouble = 0
        for seed in range(80):
            rng = random.Random(seed)
            damaged = bytearray(whole)
            at, length = rng.randrange(len(whole)), rng.choice([1, 4, 64, 4_096])
            damaged[at : at + length] = rng.randbytes(length)
            fill(path, damaged[: len(whole)])
            for call in (store.get(keys), store.find_records(keys), *(each(store) for each in CALLS.values())):
                try:
                    await call  # type: ignore[misc]
                except StoreUnavailable:
                    trouble += 1
            await store.close()
        assert trouble > 0

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("entry", f'{{"format":{FORMAT}}}'),
            ("entry", b"\xff\x00\xfe"),
            ("entry", ""),
            ("key", "a2"),
        ],
    )
    async def test_a_damaged_row_is_dropped_and_absent(
        self, store: SqliteStore, path: Path, caplog: pytest.LogCaptureFixture, column: str, value: object
    ) -> None:
        """Its neighbours stay, and it can be made again."""
        for key in ("a", "b"):
            await store.put(summary(key))
            await store.put_record(record(key))
        with database(path) as other:
            other.execute(f"UPDATE entries SET {column} = ? WHERE key = 'a'", (value,))
            asked = ["a2" if column == "key" else "a", "b"]
            assert await store.get(asked) == {"b": summary("b")}
            assert await store.find_records(asked) == [record("b")]
            assert other.execute("SELECT kind, key FROM entries ORDER BY kind").fetchall() == [
                ("record", "b"),
                ("summary", "b"),
            ]
        assert len(caplog.messages) == 2
        assert all("dropped" in message and "HAT136" not in message for message in caplog.messages)
        await store.put(summary("a"))
        assert (await store.get(["a"])).keys() == {"a"}

    async def test_bytes_that_are_no_text_are_damage_of_their_row_alone(self, store: SqliteStore, path: Path) -> None:
        """SQLite checks no encoding."""
        await store.put(summary("a"))
        await store.put(summary("b"))
        with database(path) as other:
            other.execute("UPDATE entries SET entry = CAST(x'7bff7d' AS TEXT) WHERE key = 'a'")
        assert await store.get(["a", "b"]) == {"b": summary("b")}

    @every_call
    async def test_a_schema_of_another_version_is_not_touched(self, store: SqliteStore, path: Path, call) -> None:
        """A newer release may have made it; the error says what was expected and what to do."""
        await store.put(summary("a"))
        await store.close()
        with database(path) as other:
            other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        expected = f"expected schema version {SCHEMA_VERSION}, got schema version {SCHEMA_VERSION + 1}; move the file"
        with pytest.raises(StoreUnavailable, match=expected):
            await call(store)
        with database(path) as other:
            assert other.execute("SELECT count(*) FROM entries").fetchall() == [(1,)]

    @pytest.mark.parametrize("version", [0, SCHEMA_VERSION])
    async def test_the_database_of_another_program_is_not_touched(
        self, store: SqliteStore, path: Path, version: int
    ) -> None:
        """A wrong path in the config costs nobody a table, and no change of its mode of writing."""
        with database(path) as other:
            other.execute("CREATE TABLE theirs (value)")
            other.execute(f"PRAGMA user_version = {version}")
        before = content(path)
        for call in CALLS.values():
            with pytest.raises(StoreUnavailable, match="got a database of another program"):
                await call(store)  # type: ignore[misc]
        await store.close()
        assert content(path) == before

    async def test_a_file_that_another_process_holds_is_unavailable_until_it_lets_go(
        self, store: SqliteStore, path: Path
    ) -> None:
        """Reading goes on beside a writer; nothing goes on beside one that wants the file for itself."""
        await store.put(summary("a"))
        with database(path) as other:
            other.execute("BEGIN IMMEDIATE")
            assert (await store.get(["a"])).keys() == {"a"}
            with pytest.raises(StoreUnavailable, match=r"locked; another process has held it for 0\.05 s"):
                await store.put(summary("b"))
            other.execute("COMMIT")
            await store.put(summary("b"))
        await store.close()
        with database(path) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            for call in CALLS.values():
                with pytest.raises(StoreUnavailable, match="locked; another process"):
                    await call(store)  # type: ignore[misc]
        assert (await store.get(["a", "b"])).keys() == {"a", "b"}

    async def test_a_full_disk_costs_the_entry_that_found_no_room(self, store: SqliteStore) -> None:
        """What was kept before stays, and can be read."""
        await store.put(summary("a"))
        await store._run(lambda entries: entries._file._connected().execute("PRAGMA max_page_count = 10"))
        with pytest.raises(StoreUnavailable, match="disk is full; free space on its disk"):
            await store.put(summary("b", "x" * 200_000))
        assert (await store.get(["a", "b"])).keys() == {"a"}
        await store.put(summary("b", "x" * 200_000))
        assert (await store.get(["b"])).keys() == {"b"}

    async def test_a_path_below_a_file_is_unavailable(self, tmp_path: Path, no_hang: None) -> None:
        """No folder can be made there, whoever asks."""
        (tmp_path / "file").touch()
        store = SqliteStore(tmp_path / "file" / "cache" / "store.sqlite3")
        with pytest.raises(StoreUnavailable, match="check that file and folder can be read and written"):
            await store.put(summary("a"))
        assert await store.get(["a"]) == {}
        await store.close()

    @every_call
    async def test_a_path_that_is_a_folder_is_unavailable(self, tmp_path: Path, call, no_hang: None) -> None:
        """As the error says."""
        store = SqliteStore(tmp_path)
        with pytest.raises(StoreUnavailable, match=r"[Ii]s a directory"):
            await call(store)
        await store.close()
        assert files(tmp_path / "x") == {}

    async def test_a_file_that_may_only_be_read_is_read(self, store: SqliteStore, path: Path) -> None:
        """A shared file that somebody else fills: what it holds is of use, and a put says why it fails."""
        await store.put(summary("a"))
        await store._run(lambda entries: entries._file._connected().execute("PRAGMA query_only = ON"))
        assert (await store.get(["a"])).keys() == {"a"}
        with pytest.raises(StoreUnavailable, match="readonly database"):
            await store.put(summary("b"))


WRITE = """
import asyncio, os, sys
from pathlib import Path
from context_summarize.stores.sqlite import SqliteStore
from context_summarize.core.nodes import CompactionRecord, Summary

async def write(path, name, count, size):
    store = SqliteStore(Path(path), busy_seconds=50)
    for index in range(int(count)):
        key = f"{name}-{index}"
        await store.put(Summary(key, 0, key + "x" * (index * 997 % int(size)), (), 1, 2))
        await store.put_record(CompactionRecord(key, 1, 1, 512, 100, ()))
        print(key, flush=True)
    await store.close()

print("ready", flush=True)
for name in sys.stdin:
    child = os.fork()  # a new process that need not import anything
    if not child:
        asyncio.run(write(sys.argv[1], name.strip(), *sys.argv[2:]))
        os._exit(0)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(f"\\nended {status}", flush=True)
"""
"""Starts a process for every name that it is given, which keeps entries and tells the key of each once it is kept."""


class Writers:
    """Processes that write to one file, one after the other."""

    def __init__(self, path: Path, count: int, size: int) -> None:
        command = [sys.executable, "-c", WRITE, str(path), str(count), str(size)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"

    def start(self, name: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def rest(self) -> tuple[list[str], int]:
        """What the writer told until it ended, and how it ended."""
        told = []
        while not (line := self.line()).startswith("ended"):
            told.append(line)
        return told, int(line.split()[1])

    def end(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


class TestProcesses:
    async def test_several_processes_make_and_fill_one_file(self, path: Path, no_hang: None) -> None:
        """They start at the same moment, on a file that is not there; nobody's entry is lost."""
        names = "abc"
        writers = [Writers(path, 100, 2_000) for _ in names]
        for each, name in zip(writers, names, strict=True):
            each.start(name)
        for each, name in zip(writers, names, strict=True):
            (_, *told), status = each.rest()
            assert told == [*(f"{name}-{index}" for index in range(100)), ""]
            assert status == 0
            each.end()
        keys = {f"{name}-{index}" for name in names for index in range(100)}
        store = SqliteStore(path)
        assert (await store.get(sorted(keys))).keys() == keys
        found = await store.statistics()
        assert (found.summaries, found.records) == (300, 300)
        await store.close()

    async def test_a_process_killed_in_mid_write_loses_nothing_that_it_told(self, path: Path, no_hang: None) -> None:
        """Fifty times, at a moment of its opening or writing drawn by lot, beside a process that reads or alone."""
        rng = random.Random(4)
        store = SqliteStore(path, busy_seconds=30)
        writers = Writers(path, 1_000_000, 20_000)
        kept: set[str] = set()
        for name in range(50):
            writers.start(str(name))
            process = int(writers.line())
            told = [writers.line() for _ in range(rng.choice([0, 1, 10, 30]))]
            await asyncio.sleep(rng.uniform(0, 0.005))
            os.kill(process, signal.SIGKILL)
            rest, status = writers.rest()
            assert status == signal.SIGKILL
            # A line may be torn at the end: the key was kept, but nobody was told so.
            fresh = {key for key in told + rest[:-1] if key}
            found = await store.get(sorted(fresh))
            assert all(found[key].text.startswith(key) for key in fresh)
            assert all([await store.find_records([key]) for key in fresh])
            kept |= fresh
            if rng.random() < 0.5:
                await store.close()
            with database(path) as other:
                assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        writers.end()
        assert len(kept) > 300
        assert (await store.get(sorted(kept))).keys() == kept
        await store.close()
