"""The store in a file: damage, other programs' files, full disks and missing rights."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.codec import FORMAT
from context_summarize.stores.sqlite import SqliteStore
from context_summarize.stores.sqlite_file import SCHEMA_VERSION
from tests.unit.stores.sqlite.support import CALLS, connected_with, content, database, every_call, files, fill
from tests.unit.stores.values import record, summary


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
        """A wrong path in the config neither deletes a table nor changes the journal mode of the file."""
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
        """Reading works beside a writer; nothing works beside a process that holds the file exclusively."""
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

    async def test_a_full_disk_costs_the_entry_that_found_no_room(self, path: Path, store: SqliteStore) -> None:
        """What was kept before stays, and can be read."""
        await store.put(summary("a"))
        await store.close()
        store = SqliteStore(path)
        with connected_with("PRAGMA max_page_count = 10"):
            with pytest.raises(StoreUnavailable, match="disk is full; free space on its disk"):
                await store.put(summary("b", "x" * 200_000))
            assert (await store.get(["a", "b"])).keys() == {"a"}
            await store.close()
        store = SqliteStore(path)
        await store.put(summary("b", "x" * 200_000))
        assert (await store.get(["b"])).keys() == {"b"}
        await store.close()

    async def test_a_path_below_a_file_is_unavailable(self, tmp_path: Path, no_hang: None) -> None:
        """No folder can be made there, not even by root."""
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
        """A shared file that somebody else fills: its entries are read, and a put says why it fails."""
        await store.put(summary("a"))
        store = SqliteStore(path)
        with connected_with("PRAGMA query_only = ON"):
            assert (await store.get(["a"])).keys() == {"a"}
            with pytest.raises(StoreUnavailable, match="readonly database"):
                await store.put(summary("b"))
        await store.close()
