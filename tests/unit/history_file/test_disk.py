"""The history's file on the disk: what survives cuts, damage, full disks and other sessions."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.history_file import HistoryFile
from context_summarize.messages.rows import JsonRow
from tests.properties.strategies import STORED_ROWS
from tests.support.rows import user

EXAMPLES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
HEADER = b'{"format":"context-summarize history","version":1}\n'


def rows_of(count: int) -> list[JsonRow]:
    return [user(f"question {number}") for number in range(count)]


class Session:
    """A session on a file, and the rows that it found there."""

    def __init__(self, path: Path | str) -> None:
        self.found: list[JsonRow] = []
        self.told: list[str] = []
        self.file = HistoryFile(str(path), None, self.told.append)

    async def __aenter__(self) -> Session:
        rows = await self.file.do(self.file.load)
        if rows is None:
            await self.file.do(self.file.close)
        self.found += rows or []
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.file.do(self.file.sync)
        await self.file.do(self.file.close)

    async def put(self, *names: str) -> None:
        for name in names:
            await self.file.do(self.file.append, [user(name)])


async def written(path: Path | str, rows: Sequence[JsonRow]) -> None:
    """A session that has written these rows and has ended."""
    async with Session(path) as session:
        await session.file.do(session.file.append, rows)


async def read(path: Path) -> list[JsonRow]:
    """What a new session finds."""
    async with Session(path) as session:
        return session.found


def texts(path: Path) -> list[str]:
    """What stands in the whole lines of a file now."""
    return [line.split(b'"')[7].decode() for line in path.read_bytes().split(b"\n")[1:-1]]


def others(path: Path) -> list[Path]:
    """Files beside the history, its lock aside."""
    return sorted(file for file in path.parent.iterdir() if file.name not in (path.name, f"{path.name}.lock"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


@EXAMPLES
@given(STORED_ROWS)
async def test_any_rows_survive_the_way_to_the_disk_and_back(tmp_path_factory, rows):
    """Huge integers, infinities, nesting, control characters and lone surrogates included."""
    path = tmp_path_factory.mktemp("disk") / "h.jsonl"
    await written(path, rows)
    assert repr(await read(path)) == repr(rows), "1, 1.0 and True are equal to Python, not to us"


async def test_a_file_that_is_cut_anywhere_or_saved_by_an_editor_is_read_and_goes_on(path, warnings):
    """At every byte after the header: whole lines load, and the next row stands by itself.

    Editors end lines as on Windows does, and add lines without text.
    """
    rows = [user("first"), user("zweite “Zeile” 😀", data=[1, {"a": None}]), user("third")]
    await written(path, rows)
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(HEADER), len(whole) + 1):
        path.write_bytes(whole[:cut])
        before, left = len(warnings()), rows[: sum(cut >= end for end in ends[1:])]
        await written(path, [user("next")])
        assert await read(path) == [*left, user("next")], cut
        assert len(warnings()) - before == (cut not in ends), cut
    before = len(warnings())
    for content in (whole + b"\n", whole.replace(b"\n", b"\r\n") + b" \r\n"):
        path.write_bytes(content)
        await written(path, [user("next")])
        assert await read(path) == [*rows, user("next")]
    assert len(warnings()) == before
    assert others(path) == []


@pytest.mark.parametrize(
    "content",
    [
        b"some notes of mine\n",
        b'{"format":"context-summarize history","version":2}\n{"role":"user","content":"later"}\n',
        b'{"format":"context-summarize history","version":1}',
        HEADER + b'garbage\n{"role":"user","content":"a"}\n',
        HEADER + b'{"role":"user","content":"a"}\n{"role":"nobody"}\n',
        HEADER + b"\0" * 50 + b'\n{"role":"user","content":"a"}\n',
    ],
)
async def test_a_file_that_cannot_be_read_is_refused_by_name_and_left_as_it_is(path, warnings, content):
    """Another program's, another version's, or damaged in the middle: one warning, and memory from then on."""
    path.write_bytes(content)
    async with Session(path) as session:
        await session.put("a")
        await session.file.do(session.file.sync)
        await session.file.do(session.file.replace, [])
    assert session.found == []
    assert path.read_bytes() == content
    assert others(path) == []
    (warning,) = warnings()
    assert session.told == [warning]
    assert str(path) in warning
    assert warning.endswith("in memory")
    assert "move it away;" in warning or "move the file away;" in warning


@pytest.fixture(params=[True, False])
def other(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Where the links lead: a file that stays as it is, or none, which is not made."""
    file = tmp_path / "elsewhere" / "other"
    file.parent.mkdir()
    if request.param:
        file.write_text("theirs")
    yield file
    assert [found.read_text() for found in file.parent.iterdir()] == ["theirs"] * request.param


async def test_a_lock_that_is_a_link_is_refused_by_name(path, other, warnings):
    (link := path.with_name(f"{path.name}.lock")).symlink_to(other)
    await written(path, rows_of(2))
    (warning,) = warnings()
    assert f"symbolic links: '{link}'; check" in warning
    assert not path.exists()


@pytest.mark.parametrize("where", ["beside the file", "in place of the file"])
async def test_a_link_that_is_planted_in_a_session_is_not_followed(path, other, where):
    """The next whole file stands in its place."""
    async with Session(path) as session:
        await session.put("a")
        link = path if where == "in place of the file" else path.with_name(f"{path.name}.tmp")
        link.unlink(missing_ok=True)
        link.symlink_to(other)
        await session.file.do(session.file.replace, rows_of(2))
    assert await read(path) == rows_of(2)


async def test_a_replaced_history_is_kept_beside_the_new_one(path):
    """As it was, under a name of its own; a history without rows is not kept."""
    async with Session(path) as session:
        await session.file.do(session.file.replace, [])
        await session.put("0")
        for number in range(1, 5):
            await session.file.do(session.file.replace, [user(str(number))])
        await session.put("next")
        await session.file.do(session.file.replace, [])
        await session.file.do(session.file.replace, [])
    assert await read(path) == []
    assert sorted(texts(file) for file in others(path)) == [["0"], ["1"], ["2"], ["3"], ["4", "next"]]
    assert await read(others(path)[0]) == [user("0")], "an archive is a history file like any other"


async def test_a_request_has_the_disk_asked_for_what_was_written(path, monkeypatch):
    """Also for what the session before has left; and a new file is on the disk before it takes its place."""
    await written(path, rows_of(2))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    async with Session(path) as session:
        await session.file.do(session.file.sync)
        assert synced == [path.stat().st_size]
        await session.put("more")
        assert len(synced) == 1
        await session.file.do(session.file.replace, rows_of(50))
        assert path.stat().st_size in synced


STEPS = st.sampled_from(["append", "append", "append", "replace", "sync", "full", "full", "free"])


@EXAMPLES
@given(st.lists(st.tuples(STEPS, st.integers(0, 80)), max_size=20))
async def test_whenever_the_disk_is_full_there_is_never_a_gap(tmp_path_factory, plan):
    """After each step the file holds a beginning of one of the histories so far; in the end, all of the last one."""
    path = tmp_path_factory.mktemp("disk") / "history.jsonl"
    free, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    histories: list[list[str]] = [[]]
    try:
        async with Session(path) as made:
            for number, (step, left) in enumerate([*plan, ("free", 0)]):
                if step == "append":
                    histories[-1].append(str(number))
                    await made.put(str(number))
                elif step == "replace":
                    histories.append([str(number)])
                    await made.file.do(made.file.replace, [user(str(number))])
                elif step == "sync":
                    await made.file.do(made.file.sync)
                else:
                    limit = (await asyncio.to_thread(path.stat)).st_size + left if step == "full" else free
                    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
                there = texts(path)
                assert any(there == rows[: len(there)] for rows in histories)
        assert texts(path) == histories[-1]
        assert not any(file.suffix == ".tmp" for file in others(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (free, most))


async def test_a_second_session_keeps_to_memory(path, warnings):
    async with Session(path) as first:
        await first.put("a")
        await first.file.do(first.file.replace, rows_of(1))
        temporary = path.with_name(f"{path.name}.tmp")
        temporary.write_text("being written")
        before = path.read_bytes()
        async with Session(path) as second:
            await second.put("b")
            await second.file.do(second.file.replace, [])
        assert path.read_bytes() == before
        assert temporary.exists()
    (warning,) = warnings()
    assert "another session" in warning
    assert "persistence.path" in warning
    assert await read(path) == rows_of(1)
    assert not temporary.exists(), "a killed session has left it"
