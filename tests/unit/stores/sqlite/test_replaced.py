"""The store in a file that another program deletes or replaces while it is in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.sqlite import SqliteStore
from tests.unit.stores.sqlite.support import HOUR, Clock, database, files
from tests.unit.stores.values import record, summary


def delete(path: Path, *, all_of_it: bool) -> None:
    for end in ("", "-wal", "-shm") if all_of_it else ("",):
        path.with_name(path.name + end).unlink()


async def entries(path: Path, *keys: str) -> set[str]:
    """What another process reads."""
    other = SqliteStore(path)
    found = await other.get(keys)
    await other.close()
    return {*found}


@pytest.mark.parametrize("all_of_it", [True, False])
async def test_a_file_that_was_deleted_is_not_written_on_unseen(
    store: SqliteStore, path: Path, all_of_it: bool
) -> None:
    """The next put makes a new file; a read makes none."""
    await store.put(summary("a"))
    await store.put_record(record("d"))
    delete(path, all_of_it=all_of_it)
    assert await store.get(["a"]) == {}
    assert await store.is_empty()
    assert files(path) == {}
    await store.put(summary("b"))
    await store.put(summary("c"))
    assert await entries(path, "a", "b", "c") == {"b", "c"}
    await store.close()
    assert await entries(path, "a", "b", "c") == {"b", "c"}


@pytest.mark.parametrize("call", ["get", "put"])
async def test_a_file_that_was_replaced_is_opened_anew(
    store: SqliteStore, path: Path, tmp_path: Path, call: str
) -> None:
    """As by a restored backup; nothing of the old file gets into the new one."""
    backup = SqliteStore(tmp_path / "backup.sqlite3")
    await backup.put(summary("theirs"))
    await backup.close()
    await store.put(summary("ours"))
    os.replace(tmp_path / "backup.sqlite3", path)  # noqa: PTH105
    await (store.get(["ours"]) if call == "get" else store.put(summary("more")))
    assert (await store.get(["ours", "theirs"])).keys() == {"theirs"}
    await store.close()
    with database(path) as other:
        assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_deleted_file_is_not_made_again_by_the_end(store: SqliteStore, path: Path, clock: Clock) -> None:
    """Only a put needs it; what the session has read is no reason."""
    await store.put(summary("a"))
    clock.time += 2 * HOUR
    await store.get(["a"])
    delete(path, all_of_it=True)
    await store.close()
    assert files(path) == {}


async def test_what_is_in_memory_survives_the_file(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A session loses nothing by it, and later entries are kept."""
    store = LayeredStore(MemoryStore(), SqliteStore(path))
    await store.put(summary("a"))
    delete(path, all_of_it=False)
    await store.put(summary("b"))
    assert (await store.get(["a", "b"])).keys() == {"a", "b"}
    assert await entries(path, "a", "b") == {"b"}
    await store.close()
    assert caplog.messages == []


async def test_a_second_session_goes_on_with_the_new_file(path: Path, no_hang: None) -> None:
    """Both notice by themselves, in either order."""
    first, second = SqliteStore(path), SqliteStore(path)
    for store in (first, second):
        await store.put(summary("old"))
    delete(path, all_of_it=False)
    await first.put(summary("a"))
    await second.put(summary("b"))
    await first.put(summary("c"))
    for store in (first, second):
        assert (await store.get(["old", "a", "b", "c"])).keys() == {"a", "b", "c"}
        await store.close()
    assert await entries(path, "old", "a", "b", "c") == {"a", "b", "c"}


async def test_a_damaged_entry_of_a_file_that_may_only_be_read_is_as_good_as_none(
    store: SqliteStore, path: Path
) -> None:
    """It cannot be deleted; that is no reason to leave the file alone."""
    for key in "ab":
        await store.put(summary(key))
    with database(path) as other:
        other.execute("UPDATE entries SET entry = 'damaged' WHERE key = 'a'")
        other.execute("BEGIN IMMEDIATE")  # another process writes
        assert (await store.get(["a", "b"])).keys() == {"b"}
    assert (await store.get(["a", "b"])).keys() == {"b"}


async def test_empty_files_of_killed_processes_are_removed(store: SqliteStore, path: Path) -> None:
    """Only old ones of this file: a young one may be in use, and a full one is not ours."""
    path.parent.mkdir()
    made = {part: path.with_name(f".{path.name}-{part}") for part in ("abcdefgh", "youngone", "itisfull", "other")}
    for part, file in made.items():
        file.write_text("full" if part == "itisfull" else "")
        if part != "youngone":
            os.utime(file, (time.time() - HOUR,) * 2)
    await store.put(summary("a"))
    assert {part for part, file in made.items() if file.exists()} == {"youngone", "itisfull", "other"}
