"""A file at the place where earlier releases kept it: taken over once, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import errno
import logging
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.sqlite import SqliteStore
from tests.unit.stores.sqlite.support import Clock, content, database, files, fill
from tests.unit.stores.values import record, summary

_NOBODY = 65_534
KEYS = [f"key-{index}" for index in range(450)]


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "context-summarize.sqlite3"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "context-summarize" / "summaries.sqlite3"


async def kept(place: Path, *keys: str, clock: Clock | None = None) -> None:
    """Keep summaries in the file of an earlier release."""
    store = SqliteStore(place, now=clock or Clock())
    for key in keys:
        await store.put(summary(key))
    await store.put_record(record("d"))
    await store.close()


async def found(path: Path, earlier: Path) -> set[str]:
    """The summaries that a session of today finds."""
    store = SqliteStore(path, now=Clock(), earlier=earlier)
    there = await store.get(KEYS)
    assert all(there[key] == summary(key) for key in there)
    await store.close()
    return set(there)


def linked(link: Path, target: Path) -> None:
    """A link to the target, in a folder that is made."""
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)


def link_of(path: Path) -> str:
    return os.readlink(path)  # noqa: PTH115


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


class TestMoved:
    @pytest.mark.parametrize("first", ["get", "put", "statistics", "find_records"])
    async def test_the_first_use_takes_it_over_whole(self, path: Path, earlier: Path, first: str) -> None:
        """Reading does it too; the old place is empty, and the modes are those of every store."""
        await kept(earlier, *KEYS[:3])
        store = SqliteStore(path, now=Clock(), earlier=earlier)
        calls: dict[str, Any] = {
            "get": lambda: store.get(KEYS),
            "put": lambda: store.put(summary("other")),
            "statistics": store.statistics,
            "find_records": lambda: store.find_records(["d"]),
        }
        await calls[first]()
        assert set(await store.get(KEYS)) == set(KEYS[:3])
        assert await store.find_records(["d"]) == [record("d")]
        await store.close()
        assert names(earlier) == []
        assert names(path) == [path.name]
        assert files(path) == {path.name: 0o600}
        assert files(path.parent)[path.parent.name] == 0o700

    async def test_where_nothing_is_there_nothing_is_made(self, path: Path, earlier: Path) -> None:
        """Neither by reading, nor by a link whose target is gone."""
        assert await found(path, earlier) == set()
        linked(earlier, earlier.parent / "gone" / "file")
        assert await found(path, earlier) == set()
        assert names(path.parent) == ["cache"]

    async def test_the_log_of_a_killed_process_comes_along(self, path: Path, earlier: Path, no_hang: None) -> None:
        """Entries that were never copied into the file itself."""
        child = multiprocessing.get_context("fork").Process(target=_write_and_die, args=(earlier,))
        child.start()
        child.join()
        assert earlier.with_name(earlier.name + "-wal").stat().st_size > 0
        assert await found(path, earlier) == set(KEYS[:5])
        assert names(earlier) == []

    async def test_a_link_is_made_anew_and_its_target_stays(self, path: Path, earlier: Path, tmp_path: Path) -> None:
        """The user has put the file on another disk; it may be in use meanwhile."""
        target = tmp_path / "disk" / "store.db"
        await kept(target, KEYS[0])
        linked(earlier, Path("..") / "disk" / "store.db")
        with database(target) as other:
            other.execute("SELECT count(*) FROM entries").fetchall()
            assert await found(path, earlier) == {KEYS[0]}
        assert link_of(path) == str(target)
        assert names(earlier) == []
        await kept(path, KEYS[1])
        assert set(await _read(target)) == {KEYS[0], KEYS[1]}

    async def test_a_folder_that_is_a_link_is_followed(self, path: Path, earlier: Path, tmp_path: Path) -> None:
        """The cache folder itself may stand elsewhere."""
        disk = tmp_path / "disk" / "file"
        os.mkdir(disk.parent)  # noqa: PTH102
        linked(earlier.parent, disk.parent)
        await kept(earlier, KEYS[0])
        assert await found(path, earlier) == {KEYS[0]}
        assert names(disk) == []

    async def test_a_process_that_was_killed_between_the_two_steps_is_finished(self, path: Path, earlier: Path) -> None:
        """Both names mean one file then; the old one goes."""
        await kept(earlier, KEYS[0])
        os.mkdir(path.parent)  # noqa: PTH102
        os.link(earlier, path)
        assert await found(path, earlier) == {KEYS[0]}
        assert names(earlier) == []


class TestCopied:
    async def test_both_places_hold_entries(self, path: Path, earlier: Path) -> None:
        """An older release has gone on writing at its place: what is missing is added, the rest stays as it is."""
        await kept(path, *KEYS[:2])
        await kept(earlier, *KEYS)
        with database(earlier) as other:
            other.execute("UPDATE entries SET entry = 'damaged' WHERE key = ?", (KEYS[0],))
        assert await found(path, earlier) == set(KEYS)
        assert names(earlier) == []

    async def test_another_disk_is_copied_to(self, path: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file cannot be linked there."""
        await kept(earlier, *KEYS)
        real = os.link

        def link(source: Any, target: Any) -> None:
            if Path(source) == earlier:
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            real(source, target)

        monkeypatch.setattr(os, "link", link)
        assert await found(path, earlier) == set(KEYS)
        assert names(earlier) == []

    async def test_a_file_in_use_is_copied_and_stays_until_nobody_uses_it(self, path: Path, earlier: Path) -> None:
        """What the other process adds later is taken over by a later session."""
        await kept(earlier, KEYS[0])
        older = SqliteStore(earlier, now=Clock())
        await older.put(summary(KEYS[1]))
        assert await found(path, earlier) == set(KEYS[:2])
        await older.put(summary(KEYS[2]))
        assert set(await older.get(KEYS)) == set(KEYS[:3])
        await older.close()
        assert await found(path, earlier) == set(KEYS[:3])
        assert names(earlier) == []

    @pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o666, 0o555), (0o444, 0o555), (0o444, 0o777)])
    def test_what_may_only_be_read_is_copied_and_stays(
        self, path: Path, earlier: Path, tmp_path: Path, file_mode: int, folder_mode: int
    ) -> None:
        """The file, its folder, or both; by each session anew, which finds nothing missing. No file has two names."""
        asyncio.run(kept(earlier, *KEYS[:3]))
        tmp_path.chmod(0o777)
        earlier.chmod(file_mode)
        earlier.parent.chmod(folder_mode)
        for _ in range(2):
            child = multiprocessing.get_context("fork").Process(target=_find_as_nobody, args=(path, earlier))
            child.start()
            child.join()
            assert child.exitcode == 0
        earlier.parent.chmod(0o700)
        assert not path.samefile(earlier)
        assert set(asyncio.run(_read(earlier))) == set(KEYS[:3])


class TestLeftAlone:
    @pytest.mark.parametrize("data", [b"not a database at all" * 99, b""])
    async def test_what_is_no_store_stays_where_it_is(self, path: Path, earlier: Path, data: bytes) -> None:
        """It may be anything of the user's."""
        fill(earlier, data)
        await kept_in_both(path, earlier)
        assert content(earlier) == data

    async def test_a_database_of_another_program_or_version_stays(self, path: Path, earlier: Path) -> None:
        """Another release can read it."""
        await kept(earlier, KEYS[1])
        with database(earlier) as other:
            other.execute("PRAGMA user_version = 99")
        await kept_in_both(path, earlier)
        with database(earlier) as other:
            assert other.execute("SELECT count(*) FROM entries").fetchone() == (2,)

    async def test_a_failure_is_told_and_costs_nothing(
        self, path: Path, earlier: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The session goes on with the new file."""
        fill(earlier, b"x" * 5_000)
        with caplog.at_level(logging.WARNING):
            await kept_in_both(path, earlier)
        assert "file is not a database; the file stays there" in caplog.text


async def test_several_processes_at_once_lose_nothing(path: Path, earlier: Path, no_hang: None) -> None:
    """Each takes over and writes; an older release reads and writes at the old place meanwhile."""
    await kept(earlier, *KEYS[:50])
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_take_over_and_write, args=(path, earlier, index)) for index in range(4)]
    children.append(fork.Process(target=_write_earlier, args=(earlier,)))
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 5
    there = await found(path, earlier)
    assert there == {*KEYS[:50], *KEYS[100:104], *KEYS[200:220]}
    assert names(path) == [path.name]


async def kept_in_both(path: Path, earlier: Path) -> None:
    store = SqliteStore(path, now=Clock(), earlier=earlier)
    await store.put(summary(KEYS[0]))
    assert set(await store.get(KEYS)) == {KEYS[0]}
    await store.close()


async def _read(place: Path) -> dict[str, Any]:
    store = SqliteStore(place, now=Clock())
    there = await store.get(KEYS)
    await store.close()
    return there


def _find_as_nobody(path: Path, earlier: Path) -> None:
    """Find the entries as a user whom permissions bind."""
    for folder in path.parents:
        if os.geteuid() == 0 and folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(0o755)
    if os.geteuid() == 0:
        os.seteuid(_NOBODY)
    assert asyncio.run(found(path, earlier)) == set(KEYS[:3])


def _write_and_die(place: Path) -> None:
    async def write() -> None:
        store = SqliteStore(place, now=Clock())
        for key in KEYS[:5]:
            await store.put(summary(key))
        os._exit(0)

    asyncio.run(write())


def _take_over_and_write(path: Path, earlier: Path, index: int) -> None:
    async def run() -> None:
        store = SqliteStore(path, now=Clock(), earlier=earlier, busy_seconds=30)
        await store.put(summary(KEYS[100 + index]))
        assert set(await store.get(KEYS[:50])) <= set(KEYS[:50])
        await store.close()

    asyncio.run(run())


def _write_earlier(earlier: Path) -> None:
    async def run() -> None:
        store = SqliteStore(earlier, now=Clock(), busy_seconds=30)
        for key in KEYS[200:220]:
            try:
                await store.put(summary(key))
            except StoreUnavailable:  # the file has gone as it was opened; a session tries again later
                await store.put(summary(key))
        await store.close()

    asyncio.run(run())
