"""The history on a disk that fails for a while: everything is written in the end, in order, and once."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.field.virtual import run_virtually
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.journal import Journal
from tests.support.stored_rows import user

LOG = "context_summarize.persistence.journal"
PASSING = [errno.ENOSPC, errno.EIO, errno.EDQUOT]


class Failing:
    """What goes wrong on the disk now: the error of each call, None while it works."""

    def __init__(self) -> None:
        self.write: int | None = None
        self.truncate: int | None = None
        self.fsync: int | None = None
        self.room = 0
        """Bytes that a failing write still takes."""

    def opener(self, path: Path) -> BinaryIO:
        """In place of `open_at_end`."""
        return _File(self, path)


class _File(io.FileIO):
    def __init__(self, disk: Failing, path: Path) -> None:
        super().__init__(path, "ab")
        self._disk = disk

    def write(self, data: Any) -> int:
        if self._disk.write is None:
            return super().write(data)
        taken, self._disk.room = min(self._disk.room, len(data)), 0
        if taken:
            return super().write(data[:taken])
        raise OSError(self._disk.write, os.strerror(self._disk.write))

    def truncate(self, size: int | None = None) -> int:
        if self._disk.truncate is not None:
            raise OSError(self._disk.truncate, os.strerror(self._disk.truncate))
        return super().truncate(size)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    disk, fsync = Failing(), os.fsync

    def maybe(handle: int) -> None:
        if disk.fsync is not None:
            raise OSError(disk.fsync, os.strerror(disk.fsync))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", maybe)
    return disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, LOG)
    return lambda: [line.levelname for line in caplog.records]


def content(path: Path) -> list[str]:
    """What stands in the file now, line by line: every line that has an end is a whole row."""
    return [json.loads(line)["content"] for line in path.read_text().split("\n")[1:-1]]


def archives(path: Path) -> list[list[str]]:
    return [content(file) for file in sorted(path.parent.glob(f"{path.stem}.20*.jsonl"))]


async def put(journal: Journal, *names: str) -> None:
    for name in names:
        await journal.append([user(name)])


@pytest.mark.parametrize("code", PASSING)
@pytest.mark.parametrize("room", [0, 1, 40])
@pytest.mark.parametrize("cut_fails", [False, True])
async def test_after_a_write_that_failed_nothing_is_missing(path, failing, said, code, room, cut_fails) -> None:
    """However much of a line was written, and whether it could be cut off at once; one warning, and one line after."""
    journal = Journal(path, failing.opener)
    await put(journal, "a", "b")
    failing.write, failing.room = code, room
    failing.truncate = code if cut_fails else None
    await put(journal, "c", "d")
    await journal.sync()
    assert journal.failed
    assert path.read_bytes().startswith(b'{"format"')
    failing.write = failing.truncate = None
    await journal.sync()
    assert not journal.failed
    assert content(path) == ["a", "b", "c", "d"]
    await put(journal, "e")
    assert content(path) == ["a", "b", "c", "d", "e"]
    await journal.close()
    assert said() == ["WARNING", "INFO"]


async def test_the_warning_names_the_remedy_and_the_last_line_the_rows(path, failing, caplog) -> None:
    """So that a person can tell what happened."""
    caplog.set_level(logging.INFO, LOG)
    journal = Journal(path, failing.opener)
    await put(journal, "a")
    failing.write = errno.ENOSPC
    await put(journal, "b", "c", "d")
    failing.write = None
    await journal.close()
    warning, line = caplog.messages
    assert "No space left" in warning
    assert "free disk space" in warning
    assert "in memory" in warning
    assert line.endswith("works again, with 3 rows that waited")


@pytest.mark.parametrize("code", PASSING)
@pytest.mark.parametrize("then", ["sync", "append", "replace", "close"])
async def test_after_a_sync_that_failed_the_file_is_written_anew(path, failing, said, code, then) -> None:
    """The next sync of the same file may succeed although the system has dropped what it could not write."""
    journal = Journal(path, failing.opener)
    await put(journal, "a")
    await journal.sync()
    await put(journal, "b")
    failing.fsync = code
    await journal.sync()
    assert journal.failed
    old = path.with_name("old")
    os.link(path, old)
    failing.fsync = None
    await {
        "sync": journal.sync,
        "append": lambda: journal.append([user("c")]),
        "replace": lambda: journal.replace([user("c")]),
        "close": journal.close,
    }[then]()
    await journal.close()
    assert content(path) == {"append": ["a", "b", "c"], "replace": ["c"]}.get(then, ["a", "b"])
    assert not path.samefile(old)
    assert said() == ["WARNING", "INFO"]


async def test_a_replacement_that_found_no_room_is_made_later_with_one_archive(path, failing) -> None:
    """Of the rows that the file was to hold before it; of two replacements the later one counts."""
    journal = Journal(path, failing.opener)
    await put(journal, "a")
    failing.write = failing.fsync = errno.ENOSPC
    await put(journal, "b")
    await journal.replace([user("c")])
    await put(journal, "d")
    await journal.replace([user("e")])
    await put(journal, "f")
    for _ in range(3):
        await journal.sync()
    assert content(path) == ["a"]
    failing.write = None
    await journal.sync()
    assert content(path) == ["a", "b"], "an archive and a new file must be synced"
    failing.fsync = None
    await journal.sync()
    assert content(path) == ["e", "f"]
    assert archives(path) == [["a", "b"]]
    await journal.close()


async def test_a_file_that_cannot_be_made_at_first_gets_every_row(tmp_path, said) -> None:
    """Here a file stands where its folder is to be."""
    path = tmp_path / "folder" / "history.jsonl"
    path.parent.write_text("in the way")
    journal = Journal(path)
    await journal.load()
    await put(journal, "a", "b")
    assert journal.failed
    path.parent.unlink()
    await journal.sync()
    await put(journal, "c")
    assert content(path) == ["a", "b", "c"]
    await journal.close()
    assert said() == ["WARNING", "INFO"]


async def test_rows_that_could_not_be_read_at_first_are_kept_in_an_archive(path, failing) -> None:
    """The session does not know them; its own rows are the history."""
    first = Journal(path)
    await put(first, "old")
    await first.close()
    hidden = path.with_name("hidden")
    path.rename(hidden)
    path.symlink_to(path)  # a loop: it can be neither read nor written
    journal = Journal(path)
    assert (await journal.load()).rows == []
    await put(journal, "new")
    path.unlink()
    hidden.rename(path)
    await journal.sync()
    assert content(path) == ["new"]
    assert archives(path) == [["old"]]
    await journal.close()


def test_the_file_is_tried_again_every_half_minute(path, failing, disk) -> None:
    """Without any call: a session that waits for its user is written too."""

    async def session() -> None:
        journal = Journal(path, failing.opener)
        await put(journal, "a")
        failing.write = errno.ENOSPC
        await put(journal, "b")
        for _ in range(3):
            await asyncio.sleep(31)
            disk.catch_up()
        assert content(path) == ["a"]
        failing.write = None
        await asyncio.sleep(31)
        disk.catch_up()
        assert content(path) == ["a", "b"]
        await journal.close()

    run_virtually(session())


def test_nothing_is_tried_after_the_end(path, failing) -> None:
    """The timer goes with the session."""

    async def session() -> None:
        journal = Journal(path, failing.opener)
        await put(journal, "a")
        failing.write = errno.ENOSPC
        await put(journal, "b")
        await journal.close()
        failing.write = None
        await asyncio.sleep(3_600)  # virtual seconds
        assert content(path) == ["a"]

    run_virtually(session())


STEPS = st.sampled_from(["append", "append", "replace", "sync", "fail", "fail", "work"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(STEPS, st.sampled_from(["write", "truncate", "fsync"]), st.integers(0, 80)), max_size=25))
def test_whatever_fails_when_there_is_never_a_gap(tmp_path_factory, failing, plan) -> None:
    """After each step the file holds a beginning of one of the histories so far; in the end, all of the last one."""
    path = tmp_path_factory.mktemp("disk") / "history.jsonl"

    async def session() -> None:
        journal = Journal(path, failing.opener)
        await journal.load()
        histories: list[list[JsonRow]] = [[]]
        for number, (step, what, room) in enumerate(plan):
            row = user(str(number))
            if step == "append":
                histories[-1].append(row)
                await journal.append([row])
            elif step == "replace":
                histories.append([row])
                await journal.replace([row])
            elif step == "sync":
                await journal.sync()
            else:
                setattr(failing, what, errno.ENOSPC if step == "fail" else None)
                failing.room = room
            if failing.truncate is None:
                there = content(path)
                assert any(there == [row["content"] for row in rows][: len(there)] for rows in histories)
        failing.write = failing.truncate = failing.fsync = None
        await journal.close()
        assert content(path) == [row["content"] for row in histories[-1]]

    failing.write = failing.truncate = failing.fsync = None
    asyncio.run(session())


# --- what kills leave behind ----------------------------------------------------------------------------------------


async def test_temporary_files_of_killed_sessions_are_removed_at_the_next_start(path) -> None:
    """Only those of this history; other programs' files, and those of other histories, stay."""
    ours = [path.with_name(f".{path.name}.{part}.tmp") for part in ("abcdefgh", "a1_b2_c3")]
    theirs = [path.with_name(name) for name in (".other.jsonl.abcdefgh.tmp", f".{path.name}.abc.tmp", "x.tmp")]
    for file in [*ours, *theirs]:
        file.write_text("half")
    journal = Journal(path)
    await journal.load()
    assert [file.exists() for file in ours] == [False, False]
    assert all(file.exists() for file in theirs)
    await journal.close()


async def test_temporary_files_of_a_session_that_runs_stay(path) -> None:
    """A second session may not write, so it removes nothing."""
    first, second = Journal(path), Journal(path)
    await first.load()
    temporary = path.with_name(f".{path.name}.abcdefgh.tmp")
    temporary.write_text("being written")
    await second.load()
    assert second.failed
    assert temporary.exists()
    await first.close()
    await second.close()


async def test_an_archive_appears_whole_or_not_at_all(path, failing) -> None:
    """It has its name only once its content is on the disk."""
    journal = Journal(path, failing.opener)
    await put(journal, "a")
    failing.fsync = errno.EIO
    await journal.replace([])
    assert archives(path) == []
    failing.fsync = None
    await journal.close()
    assert archives(path) == [["a"]]


async def test_on_a_disk_without_links_archives_are_made_all_the_same(path, monkeypatch) -> None:
    """As on some network disks; and none overwrites another."""

    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    journal = Journal(path)
    for name in "abc":
        await journal.replace([user(name)])
    await journal.close()
    assert sorted(archives(path)) == [["a"], ["b"]]
    assert list(path.parent.glob(".*")) == []
