"""The history on disk: what survives cuts, kills, damage and full disks."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.messages.rows import JsonRow
from context_summarize.persistence import beside
from context_summarize.persistence import history_file as module
from context_summarize.persistence.history_file import Loaded
from context_summarize.persistence.journal import Journal
from tests.support.stored_rows import ROWS, user

T = TypeVar("T")

EXAMPLES = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def rows_of(count: int) -> list[JsonRow]:
    return [user(f"question {number}") for number in range(count)]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run in a loop of its own, also from a test that has one: a session in another process has no part in ours."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def written(path: Path, rows: list[JsonRow]) -> Path:
    """A closed history file with these rows."""

    async def write() -> None:
        journal = Journal(path)
        await journal.load()
        await journal.append(rows)
        await journal.close()
        assert not journal.failed

    run(write())
    return path


def read(path: Path) -> Loaded:
    """What a new session loads."""

    async def load() -> Loaded:
        journal = Journal(path)
        loaded = await journal.load()
        await journal.close()
        assert not journal.failed
        return loaded

    return run(load())


async def closed(journal: Journal) -> None:
    await journal.close()


def others(path: Path) -> list[Path]:
    """Files beside the history, its lock aside."""
    return sorted(file for file in path.parent.iterdir() if file.name not in (path.name, f"{path.name}.lock"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


# --- what is written comes back -------------------------------------------------------------------------------------


async def test_rows_come_back_in_order_with_everything_that_is_in_them(path):
    """System and hook rows, None values and metadata included; one line a row after a header."""
    rows = [
        {"role": "system", "content": "Be brief."},
        user("hello"),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "tool": "t", "arguments": {"a": [1, None]}}]},
        {"role": "tool", "tool_call_id": "1", "content": "line\nline\u2028line\x85"},
        {"role": "system", "content": "note", "metadata": {"source": "hook", "ephemeral": False}},
    ]
    first = Journal(path)
    assert await first.load() == Loaded()
    await first.append(rows[:2])
    await first.append(rows[2:])
    await first.sync()
    await first.close()

    second = Journal(path)
    assert await second.load() == Loaded(rows)
    await second.append([user("more")])
    await second.close()

    third = Journal(path)
    assert (await third.load()).rows == [*rows, user("more")]
    await third.close()
    lines = path.read_bytes().split(b"\n")
    header = json.loads(lines[0])
    assert (header["format"], header["version"], "created" in header) == ("context-summarize history", 1, True)
    assert len(lines) == 1 + 6 + 1
    assert others(path) == []


@EXAMPLES
@given(ROWS)
def test_any_rows_survive_the_way_to_the_disk_and_back(rows):
    """Huge integers, infinities, nesting, control characters and lone surrogates included."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = read(written(Path(folder) / "h.jsonl", rows))
    assert loaded.rows == rows
    assert repr(loaded.rows) == repr(rows), "1, 1.0 and True are equal to Python, not to us"


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\ud83d", "a\udcffb", "ab\ude00\ud83d", "\N{GRINNING FACE}", "\x00"])
async def test_surrogates_stay_what_they_were(path, text):
    """A high one before a low one stays two characters."""
    journal = Journal(path)
    await journal.append([user(text, **{text: text})])
    assert (await journal.load()).rows == [user(text, **{text: text})]
    await journal.close()


async def test_tuples_number_keys_and_nan_become_what_json_makes_of_them(path):
    """The round trip is JSON's own."""
    row = user("x", data=(1, 2), keys={1: "a"}, nan=float("nan"))
    journal = Journal(path)
    await journal.append([row])
    loaded = (await journal.load()).rows
    await journal.close()
    assert repr(loaded) == repr(json.loads(json.dumps([row])))


async def test_ephemeral_rows_are_not_written(path):
    """By either mark; a mark that is not true is none."""
    kept = [user("a", ephemeral=False), user("b", metadata={"ephemeral": "yes"}), user("c", metadata="ephemeral")]
    journal = Journal(path)
    await journal.append([user("x", ephemeral=True), kept[0], user("y", metadata={"ephemeral": True}), *kept[1:]])
    assert (await journal.load()).rows == kept
    await journal.replace([user("x", ephemeral=True), *kept])
    assert (await journal.load()).rows == kept
    await journal.close()


# --- where it is, and who may read it -------------------------------------------------------------------------------


async def test_nothing_is_opened_before_the_first_call(path):
    """Making a journal, and closing one that was not used, touch nothing; so does appending no rows."""
    threads = threading.active_count()
    journal = Journal(path.parent / "folder" / "h.jsonl")
    await journal.append([])
    assert threading.active_count() == threads
    await journal.close()
    assert list(path.parent.iterdir()) == []


async def test_the_history_is_readable_by_its_owner_alone(path):
    """The file, its lock, its archive, and the folder that was made for them."""
    path = path.parent / "made" / "h.jsonl"
    before = os.umask(0)
    try:
        journal = Journal(path)
        await journal.append(rows_of(1))
        await journal.replace(rows_of(2))
        await journal.close()
    finally:
        os.umask(before)
    files = list(path.parent.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    """As users write it in their settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    journal = Journal("~/kept/h.jsonl")
    await journal.append(rows_of(1))
    await journal.close()
    assert (tmp_path / "kept" / "h.jsonl").is_file()


async def test_a_relative_path_stays_where_the_first_call_found_it(tmp_path, monkeypatch):
    """A later change of the working directory does not move the history."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    journal = Journal("h.jsonl")
    await journal.append(rows_of(1))
    monkeypatch.chdir(tmp_path / "elsewhere")
    await journal.append(rows_of(1))
    await journal.replace(rows_of(3))
    await journal.close()
    assert len(read(tmp_path / "h.jsonl").rows) == 3
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_link_stays_a_link_and_its_file_is_the_history(path):
    """Also when the file is replaced."""
    target = path.parent / "target.jsonl"
    path.symlink_to(target)
    journal = Journal(path)
    await journal.append(rows_of(1))
    await journal.replace(rows_of(2))
    await journal.close()
    assert path.is_symlink()
    assert not target.is_symlink()
    assert len(read(target).rows) == 2


# --- cut, damaged, foreign ------------------------------------------------------------------------------------------


def test_a_file_that_is_cut_anywhere_gives_back_a_prefix_and_goes_on(path):
    """At every byte: whole rows load, the rest goes with one warning at most, and the next row stands by itself."""
    rows = [user("first"), user("zweite “Zeile” 😀", data=[1, {"a": None}]), user("third")]
    whole = written(path, rows).read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        loaded = read(path)
        # A line that lacks nothing but its end is whole.
        assert loaded.rows == rows[: sum(cut >= end for end in ends[1:])], cut
        clean = cut == 0 or cut in ends[1:] or cut - 1 in ends
        assert loaded.dropped == (0 if clean else 1), cut
        written(path, [user("next")])
        assert read(path) == Loaded([*loaded.rows, user("next")]), cut
        for file in others(path):
            assert cut <= ends[0], "only a header that is torn leaves an archive"
            file.unlink()


@EXAMPLES
@given(ROWS, st.data())
def test_a_cut_in_any_rows_gives_back_a_prefix(rows, data):
    """Whatever the bytes at the cut are."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "h.jsonl", rows)
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        loaded = read(path).rows
        assert loaded == rows[: len(loaded)]
        assert read(path) == Loaded(loaded)


def test_a_torn_last_line_is_cut_off_with_one_warning(path, warnings):
    """The file ends with the last whole line again; nothing is archived."""
    whole = written(path, rows_of(2)).read_bytes()
    path.write_bytes(whole + b'{"role":"user","content":"tor')
    assert read(path) == Loaded(rows_of(2), dropped=1)
    assert path.read_bytes() == whole
    assert others(path) == []
    (warning,) = warnings()
    assert str(path) in warning
    assert "torn" in warning
    assert "2 rows" in warning


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage",
        b'{"role":"user"',
        b"[1]",
        b'{"role":"nobody"}',
        b'{"role":"tool"}',
        b"\xff\xfe",
        b"\0" * 50,
        b"[" * 9999,
    ],
)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_damaged_lines_are_left_out_and_kept_aside(path, warnings, bad, at):
    """What follows them is not lost, and the bytes as they were stay in an archive; one warning says so."""
    lines = written(path, rows_of(2)).read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:at], bad + b"\n", *lines[at:]])
    path.write_bytes(damaged)
    loaded = read(path)
    (archive,) = others(path)
    assert loaded == Loaded(rows_of(2), dropped=1, archive=archive)
    assert archive.name.startswith("history.20")
    assert archive.name.endswith(".damaged.jsonl")
    assert archive.read_bytes() == damaged
    (warning,) = warnings()
    assert "1 damaged" in warning
    assert str(archive) in warning
    assert read(path) == Loaded(rows_of(2)), "the file is whole again"


def test_damaged_lines_and_a_torn_end_are_one_warning(path, warnings):
    """With the number of lines that were left out; blank lines are no damage."""
    whole = written(path, rows_of(2)).read_bytes()
    path.write_bytes(whole + b"\n\nx\ny\n" + b'{"role"')
    loaded = read(path)
    assert (loaded.rows, loaded.dropped) == (rows_of(2), 3)
    (warning,) = warnings()
    assert "2 damaged" in warning
    assert "torn" in warning


HEADER = b'{"format":"context-summarize history","version":1,"created":"2026-01-01T00:00:00+00:00"}'


@pytest.mark.parametrize(
    "content",
    [
        b"some notes of mine\n",
        b"some notes without an end",
        b'{"role":"user","content":"another program"}\n',
        b'{"format":"context-summarize history","version":2}\n{"role":"user","content":"later"}\n',
        b'{"format":"context-summarize history"}\n',
        b'{"format":"context-summarize history","version":1\n{"role":"user","content":"x"}\n',
        b"\x00" * 5000,
        b"[" * 4000 + b"\n",
        b" \n" + HEADER + b"\n",
        b"{}\n",
        b"\n",
    ],
)
async def test_a_file_that_is_not_ours_is_left_as_it_is(path, warnings, content):
    """One warning with the remedy, memory from then on, and not even a lock beside it."""
    path.write_bytes(content)
    journal = Journal(path)
    assert await journal.load() == Loaded()
    await journal.append(rows_of(1))
    await journal.sync()
    await journal.replace(rows_of(1))
    await journal.close()
    assert journal.failed
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    (warning,) = warnings()
    assert str(path) in warning
    assert "in memory" in warning
    assert "move it" in warning


def test_a_header_without_an_end_loses_nothing_that_stood_there(path):
    """A file whose line ends were taken out begins anew, and what was in it is kept aside."""
    content = HEADER + b' {"role":"user","content":"x"}'
    path.write_bytes(content)
    loaded = read(path)
    assert loaded.archive is not None
    assert loaded.archive.read_bytes() == content


# --- a new file in place of the old ---------------------------------------------------------------------------------


async def test_a_replaced_history_is_archived_beside_the_new_one(path):
    """The archive holds the old file as it was; later rows go to the new one alone."""
    journal = Journal(path)
    await journal.append(rows_of(3))
    old = path.read_bytes()
    await journal.replace([user("repaired")])
    await journal.append([user("next")])
    await journal.close()
    (archive,) = others(path)
    assert archive.name.startswith("history.20")
    assert archive.name.endswith("Z.jsonl")
    assert archive.read_bytes() == old
    assert read(path).rows == [user("repaired"), user("next")]
    assert read(archive).rows == rows_of(3), "an archive is a history file like any other"


async def test_no_archive_overwrites_another(path):
    """Many within one second get names of their own."""
    journal = Journal(path)
    await journal.append([user("0")])
    for number in range(1, 6):
        await journal.replace([user(str(number))])
    await journal.replace([])
    await journal.close()
    assert sorted(read(file).rows[0]["content"] for file in others(path) if file.suffix == ".jsonl") == list("012345")
    assert read(path).rows == []


async def test_a_history_without_rows_leaves_no_archive(path):
    """A fresh session that is given its messages, or cleared twice, has nothing to keep."""
    journal = Journal(path)
    await journal.load()
    await journal.replace([])
    await journal.replace(rows_of(1))
    assert others(path) == []
    await journal.replace([])
    await journal.replace([])
    await journal.close()
    assert len(others(path)) == 1


async def test_a_history_that_was_only_loaded_is_archived_too(path):
    """Its rows came from an earlier session."""
    written(path, rows_of(2))
    journal = Journal(path)
    await journal.load()
    await journal.replace([])
    await journal.close()
    assert len(others(path)) == 1


# --- order, cancellation, the loop ----------------------------------------------------------------------------------


async def test_concurrent_appends_keep_the_order_of_the_calls(path):
    """However many are under way."""
    journal = Journal(path)
    await asyncio.gather(*(journal.append([row]) for row in rows_of(200)))
    assert (await journal.load()).rows == rows_of(200)
    await journal.close()


@EXAMPLES
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_a_cancelled_call_is_done_once(plan):
    """Cancelled before, while or after it is written: no row is lost, none is doubled, the order stays."""

    async def run() -> list[JsonRow]:
        journal = Journal(Path(folder) / "h.jsonl")
        tasks = []
        for number, (cancel, turns) in enumerate(plan):
            task = asyncio.ensure_future(journal.append([user(str(number))]))
            await asyncio.sleep(0)  # the call has begun
            for _ in range(turns):
                await asyncio.sleep(0)
            if cancel:
                task.cancel()
            tasks.append(task)
        await asyncio.gather(*tasks, return_exceptions=True)
        await journal.sync()
        loaded = await journal.load()
        await journal.close()
        return loaded.rows

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(run()) == [user(str(number)) for number in range(len(plan))]


async def test_a_cancelled_close_closes(path, disk):
    """The next session gets the file."""
    journal = Journal(path)
    await journal.append(rows_of(1))
    task = asyncio.ensure_future(journal.close())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.to_thread(disk.thread.shutdown)
    second = Journal(path)
    assert (await second.load()).rows == rows_of(1)
    await second.close()


async def test_the_loop_runs_on_while_the_disk_is_slow(path, monkeypatch, no_hang):
    """The write that waits for the test to go on is waited for in another thread."""
    gate, started, seen = threading.Event(), asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def slow(file: module.HistoryFile, rows: Any) -> None:
        seen.append(threading.get_ident())
        loop.call_soon_threadsafe(started.set)
        gate.wait()

    monkeypatch.setattr(module.HistoryFile, "append", slow)
    journal = Journal(path)
    waiting = asyncio.ensure_future(journal.append(rows_of(1)))
    await started.wait()
    assert not waiting.done()
    gate.set()
    await waiting
    assert threading.get_ident() not in seen
    await journal.close()


def test_rows_are_written_although_the_loop_ends_first(path):
    """A host that exits without closing loses no row that it had handed over."""

    async def leave() -> Journal:
        journal = Journal(path)
        tasks = [asyncio.ensure_future(journal.append([row])) for row in rows_of(50)]
        await asyncio.sleep(0)
        del tasks
        return journal

    journal = asyncio.run(leave())
    run(closed(journal))
    assert read(path).rows == rows_of(50)


async def test_a_file_that_is_given_up_is_left_as_it_is_and_let_go_of(path, disk, warnings, no_hang):
    """One warning; work that waits for the disk comes to nothing, and the next session gets the file."""
    written(path, rows_of(1))
    journal, gate = Journal(path), threading.Event()
    disk.hang(gate)
    loading, appending = journal.load(), journal.append(rows_of(2))
    journal.give_up("it hangs")
    journal.give_up("it hangs")
    assert journal.failed
    await journal.append(rows_of(3))
    await journal.sync()
    gate.set()
    assert await loading == Loaded()
    await appending
    await journal.close()
    assert read(path).rows == rows_of(1)
    (warning,) = warnings()
    assert "it hangs" in warning


async def test_a_file_that_is_given_up_once_it_is_open_is_let_go_of(path):
    """At close at the latest."""
    journal = Journal(path)
    await journal.append(rows_of(1))
    journal.give_up("it hangs")
    await journal.close()
    assert read(path).rows == rows_of(1)


async def test_what_comes_after_close_stays_in_memory(path):
    """It raises nothing, opens nothing and writes nothing; closing twice is fine."""
    journal = Journal(path)
    await journal.append(rows_of(1))
    await asyncio.gather(journal.close(), journal.append(rows_of(2)))
    await journal.close()
    await journal.append(rows_of(3))
    await journal.sync()
    await journal.replace([])
    assert await journal.load() == Loaded()
    second = Journal(path)
    assert (await second.load()).rows == rows_of(1)
    await second.close()


# --- sync, kills ----------------------------------------------------------------------------------------------------


async def test_sync_has_the_disk_asked_once_for_what_was_appended(path, monkeypatch):
    """Not at each row, and not again where nothing came since; close syncs too."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    journal = Journal(path)
    await journal.load()
    assert path.stat().st_size in synced, "a new file is on the disk before it takes its place"
    synced.clear()
    await journal.append(rows_of(2))
    await journal.append(rows_of(2))
    assert synced == []
    await journal.sync()
    await journal.sync()
    assert synced == [path.stat().st_size]
    await journal.append(rows_of(1))
    await journal.close()
    assert synced[1:] == [path.stat().st_size]


async def test_the_first_sync_is_for_the_session_before_too(path, monkeypatch):
    """It may have ended without one."""
    written(path, rows_of(2))
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    journal = Journal(path)
    await journal.load()
    await journal.sync()
    await journal.close()
    assert synced == [path.stat().st_size]


KILLED = """
import asyncio, os, pathlib, random, signal, sys
from context_summarize.persistence.journal import Journal

async def session(path, out):
    journal = Journal(path)
    await journal.load()
    number = 0
    while sys.argv[2] == "replace":
        await journal.replace([{"role": "user", "content": f"{number} " + "x" * 9_000}] * 3)
        os.write(out, b"%d\\n" % number)
        number += 1
    while True:
        for _ in range(random.randrange(1, 4)):
            text = f"{number} " + "x" * random.choice([9, 70_000])
            asyncio.ensure_future(journal.append([{"role": "user", "content": text}]))
            number += 1
        await asyncio.sleep(0)
        await journal.sync()
        os.write(out, b"%d\\n" % number)

random.seed(7)
for run in range(int(sys.argv[3])):
    back, out = os.pipe()
    child = os.fork()
    if child == 0:
        random.seed(run)
        asyncio.run(session(pathlib.Path(sys.argv[1]) / f"{run}.jsonl", out))
    os.close(out)
    seen = b""
    while seen.count(b"\\n") < 1 + run:
        seen += os.read(back, 100)
    for _ in range(random.randrange(20_000)):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen += os.read(back, 10_000)
    print(seen.split()[-1].decode())
"""


def reported_by_the_killed(folder: Path, call: str, times: int) -> list[int]:
    """Kill so many sessions in mid-write; the last number that each had reported."""
    command = [sys.executable, "-c", KILLED, str(folder), call, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    reported = [int(line) for line in done.stdout.split()]
    assert len(reported) == times
    return reported


def test_a_session_that_is_killed_loses_no_row_that_was_synced(tmp_path, no_hang):
    """Twenty times, in mid-write: what was synced is there, in order, and at most one line is torn."""
    for run_number, least in enumerate(reported_by_the_killed(tmp_path, "append", 20)):
        loaded = read(tmp_path / f"{run_number}.jsonl")
        assert len(loaded.rows) >= least > 0
        assert [int(row["content"].split()[0]) for row in loaded.rows] == list(range(len(loaded.rows)))
        assert loaded.dropped <= 1


def test_a_session_that_is_killed_while_it_replaces_its_file_has_one_of_the_two(tmp_path, no_hang):
    """Whole: never none, never half of one."""
    for run_number, least in enumerate(reported_by_the_killed(tmp_path, "replace", 10)):
        loaded = read(tmp_path / f"{run_number}.jsonl")
        assert loaded.dropped == 0
        assert len(loaded.rows) == 3
        assert least <= int(loaded.rows[0]["content"].split()[0]) <= least + 1


# --- what cannot be used --------------------------------------------------------------------------------------------


def _folder(path: Path) -> None:
    path.mkdir()


def _parent_is_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file")


def _loop_of_links(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/full")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [_folder, _parent_is_a_file, _loop_of_links, _device, _pipe])
async def test_what_cannot_be_a_history_means_memory_and_one_warning(tmp_path, warnings, spoil, no_hang):
    """Nothing is raised, whatever is called, and the warning names path and remedy."""
    path = tmp_path / "made" / "history.jsonl"
    path.parent.mkdir()
    spoil(path)
    journal = Journal(path)
    assert not journal.failed
    assert await journal.load() == Loaded()
    assert journal.failed
    await journal.append(rows_of(1))
    await journal.sync()
    await journal.replace(rows_of(1))
    await journal.close()
    (warning,) = warnings()
    assert "history.jsonl" in warning or "full" in warning
    assert "in memory" in warning
    assert "correct persistence.path" in warning


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "x" * 300, "", "/", "."])
async def test_a_path_that_no_file_can_have_means_memory(tmp_path, monkeypatch, warnings, name):
    """Whatever stands in the settings."""
    monkeypatch.chdir(tmp_path)
    journal = Journal(name)
    await journal.append(rows_of(1))
    await journal.close()
    assert journal.failed
    assert len(warnings()) == 1


FULL = """
import asyncio, logging, pathlib, resource, sys
from context_summarize.persistence.journal import Journal
logging.basicConfig(format="%(message)s")

async def session(path):
    journal = Journal(path)
    await journal.append([{"role": "user", "content": f"kept {n}"} for n in range(3)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + int(sys.argv[3]), resource.RLIM_INFINITY))
    await getattr(journal, sys.argv[2])([{"role": "user", "content": "x" * 200}])
    await journal.append([{"role": "user", "content": "y"}])
    await journal.sync()
    assert journal.failed
    await journal.close()

asyncio.run(session(pathlib.Path(sys.argv[1])))
"""


@pytest.mark.parametrize(("call", "room", "archives"), [("append", 60, 0), ("replace", 60, 1), ("replace", -60, 0)])
def test_a_full_disk_leaves_the_rows_that_were_there(path, call, room, archives):
    """A row is written whole or not at all, nothing comes after it, and nothing half-made is left behind."""
    command = [sys.executable, "-c", FULL, str(path), call, str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("in memory") == done.stderr.count("\n") == 1
    assert "free disk space" in done.stderr
    assert read(path) == Loaded([user(f"kept {number}") for number in range(3)])
    assert [read(file).rows for file in others(path)] == [read(path).rows] * archives


@pytest.mark.parametrize("removed", [True, False])
async def test_a_file_that_is_taken_away_is_not_written_on_in_silence(path, warnings, removed):
    """The next sync says that rows stay in memory; the file that took its place is left as it is."""
    journal = Journal(path)
    await journal.append(rows_of(1))
    await journal.sync()
    path.rename(path.with_name("moved"))
    if not removed:
        path.write_text("theirs")
    await journal.append(rows_of(1))
    await journal.sync()
    await journal.append(rows_of(1))
    await journal.close()
    assert journal.failed
    assert len(warnings()) == 1
    assert path.exists() is not removed
    assert removed or path.read_text() == "theirs"


async def test_a_second_session_on_one_file_keeps_to_memory(path, warnings):
    """One warning with the remedy; the first goes on, and the file is free once it has closed."""
    first, second = Journal(path), Journal(path)
    await first.append(rows_of(1))
    before = path.read_bytes()
    assert await second.load() == Loaded()
    await second.append(rows_of(5))
    await second.replace([])
    await second.close()
    assert second.failed
    assert path.read_bytes() == before
    (warning,) = warnings()
    assert "another session" in warning
    assert "persistence.path" in warning
    await first.replace(rows_of(2))
    blocked = Journal(path)
    await blocked.load()
    assert blocked.failed, "replacing the file lets nobody in"
    await first.close()
    third = Journal(path)
    assert (await third.load()).rows == rows_of(2)
    await third.close()


def test_another_process_is_kept_out_and_a_killed_one_keeps_nobody_out(path, warnings):
    """The lock goes with its process."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import asyncio, sys, time\nfrom context_summarize.persistence.journal import Journal\n"
            "journal = Journal(sys.argv[1])\nasync def hold():\n    await journal.load()\n"
            "asyncio.run(hold())\nprint(flush=True)\ntime.sleep(60)",
            str(path),
        ],
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()

        async def kept_out() -> bool:
            journal = Journal(path)
            await journal.load()
            await journal.close()
            return journal.failed

        assert asyncio.run(kept_out())
        holder.kill()
    assert len(warnings()) == 1
    assert read(path).rows == []


async def test_without_locks_the_history_is_kept_all_the_same(path, monkeypatch):
    """As on platforms that have none."""
    monkeypatch.setattr(beside, "fcntl", None)
    first, second = Journal(path), Journal(path)
    await first.append(rows_of(1))
    assert (await second.load()).rows == rows_of(1)
    await first.close()
    await second.close()
    assert not second.failed
