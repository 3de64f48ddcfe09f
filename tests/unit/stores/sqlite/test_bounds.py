"""The store in a file: bounds in bytes and age, and giving space back."""

from __future__ import annotations

from pathlib import Path

from context_summarize.stores.sqlite import SqliteStore
from context_summarize.stores.sqlite_entries import MOST_RECORDS, StoreStatistics
from tests.unit.stores.sqlite.support import DAY, HOUR, Clock, content, database
from tests.unit.stores.values import record, summary


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
        hashes = [f"d{index}" for index in range(MOST_RECORDS + 2)]
        for hash_ in hashes:
            await store.put_record(record(hash_))
        assert await store.find_records(hashes) == [record(hash_) for hash_ in hashes[:MOST_RECORDS]]


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
