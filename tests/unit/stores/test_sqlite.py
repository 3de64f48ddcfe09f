"""The store in a file: waits, files that are replaced or linked, its bounds, several processes, and damage."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from context_summarize.errors import StoreUnavailable
from context_summarize.stores import SqliteStore
from tests.support.recorder import Clock
from tests.unit.stores.test_contract import record, summary

DAY = 86_400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "store.db"


@pytest.fixture
async def store(path: Path, clock: Clock, no_hang: None) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path, now=clock, busy_seconds=50)
    yield made
    await made.close()


def database(path: Path) -> contextlib.closing[sqlite3.Connection]:
    """The file as another program sees it; every statement is committed at once."""
    return contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0))


def remove(path: Path, *ends: str) -> None:
    for end in ends:
        path.with_name(path.name + end).unlink(missing_ok=True)


def damage(path: Path, whole: bytes, choice: random.Random, length: int) -> None:
    """Put the file back as it was whole, but for so many bytes anywhere in it."""
    at = choice.randrange(len(whole))
    remove(path, "-wal", "-shm")
    path.write_bytes((whole[:at] + choice.randbytes(length) + whole[at + length :])[: len(whole)])


async def test_the_event_loop_goes_on_while_the_file_is_waited_for(store, path):
    """The wait ends when this very loop releases the file."""
    await store.put(summary("a"))
    with database(path) as other:
        other.execute("BEGIN IMMEDIATE")
        put = asyncio.create_task(store.put(summary("b")))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not put.done()
        other.execute("COMMIT")
        await put
    assert (await store.get(["b"])).keys() == {"b"}


@pytest.mark.parametrize("ends", [("", "-wal", "-shm"), ("",)])
async def test_a_file_that_was_deleted_or_replaced_is_let_go_of(store, path, ends):
    await store.put(summary("a"))
    remove(path, *ends)
    assert await store.get(["a"]) == {}
    await store.put(summary("b"))
    other = SqliteStore(path)
    assert (await other.get(["a", "b"])).keys() == {"b"}
    remove(path, "", "-wal", "-shm")
    await other.put(summary("c"))
    await other.close()
    assert (await store.get(["a", "b", "c"])).keys() == {"c"}


@pytest.mark.parametrize(
    ("pragma", "says"),
    [
        ("application_id = 7", "another program's database"),
        ("user_version = 1", "of version 1"),
        ("user_version = 3", "of version 3"),
    ],
)
async def test_a_file_of_another_program_or_version_is_refused(store, path, pragma, says):
    await store.put(summary("a"))
    await store.close()
    with database(path) as other:
        other.execute(f"PRAGMA {pragma}")
    with pytest.raises(StoreUnavailable, match=says):
        await store.put(summary("b"))


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
async def test_no_link_beside_the_file_is_followed(store, path, end):
    """SQLite makes those files; a link that somebody has planted leads nowhere."""
    await store.put(summary("a"))
    await store.close()
    (other := path.with_name("other")).write_text("theirs\n" * 99)
    path.with_name(path.name + end).symlink_to(other)
    with pytest.raises(StoreUnavailable, match=r"store\.db: unable to open.*; no permission to read"):
        await store.put(summary("b"))
    assert other.read_text() == "theirs\n" * 99


async def test_the_least_recently_used_go_first(path, clock):
    """The bound is in bytes on disk, reading counts as use, and a record goes like a summary."""
    store = SqliteStore(path, max_bytes=400_000, now=clock)
    keys = [f"k{index:02}" for index in range(45)]
    await store.put_record("old", record())
    for key in keys[:30]:
        clock.time += 3_600
        await store.put(summary(key, "x" * 10_000))
    await store.get(keys[:5])
    for key in keys[30:]:
        clock.time += 1
        await store.put(summary(key, "x" * 10_000))
    kept = sorted(await store.get(keys))
    assert kept[:5] == keys[:5]
    assert kept[5:] == keys[-len(kept[5:]) :]
    assert 25 < len(kept) < 40
    assert await store.get_records(["old"]) == {}
    await store.close()
    assert (await asyncio.to_thread(path.stat)).st_size <= 430_000


async def test_entries_that_nobody_used_for_long_go(store, clock):
    """A session that is resumed after months pays again; one in use keeps all, however old."""
    await store.put(summary("forgotten"))
    await store.put_record("forgotten", record())
    await store.put(summary("used"))
    clock.time += 80 * DAY
    await store.put(summary("later"))
    await store.get(["used"])
    clock.time += 11 * DAY
    await store.put(summary("new"))
    assert (await store.get(["forgotten", "used", "new"])).keys() == {"used", "new"}
    assert await store.get_records(["forgotten"]) == {}


async def test_damage_anywhere_in_the_file_gives_one_error_or_fewer_entries(store, path):
    keys = [f"k{index}" for index in range(40)]
    for key in keys:
        await store.put(summary(key, f"text of {key}" * 20))
        await store.put_record(key, record())
    await store.close()
    whole, choice, told = await asyncio.to_thread(path.read_bytes), random.Random(7), list[str]()
    for length in (1, 4, 64, 4_096, 20_000) * 4:
        damage(path, whole, choice, length)
        for call in (
            lambda: store.get(keys),
            lambda: store.get_records(keys),
            lambda: store.put(summary("a")),
            lambda: store.put_record("d", record()),
        ):
            try:
                await call()
            except StoreUnavailable as error:
                told.append(str(error))
        await store.close()
    assert any("the cache is damaged; delete the file" in text for text in told)
    assert not any("can be written" in text for text in told)


WRITE = """
import asyncio, sys
from pathlib import Path
from context_summarize.core.nodes import Summary
from context_summarize.stores import SqliteStore

async def write(path, name, count):
    store = SqliteStore(Path(path), busy_seconds=50)
    for index in range(int(count)):
        key = f"{name}-{index}"
        await store.put(Summary(key, 0, key + "x" * (index * 997 % 20_000), 1, 2))
        await store.put_record(key, {"frontier": 1})
    await store.close()

asyncio.run(write(*sys.argv[1:]))
"""


async def test_several_processes_make_and_fill_one_file_and_one_of_them_is_killed(store, path):
    counts = {"a": 20, "b": 20, "killed": 1_000_000}
    commands = [[sys.executable, "-c", WRITE, str(path), name, str(count)] for name, count in counts.items()]
    first, second, killed = map(subprocess.Popen, commands)
    assert (first.wait(), second.wait()) == (0, 0)
    killed.kill()
    assert killed.wait() != 0
    keys = [f"{name}-{at}" for name in "ab" for at in range(20)]
    found = await store.get(keys)
    assert [found[key].text.partition("x")[0] for key in keys] == keys
    assert len(await store.get_records(keys)) == len(keys)
    with database(path) as other:
        assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
