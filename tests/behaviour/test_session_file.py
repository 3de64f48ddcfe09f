"""The history's file through the manager: what the next session finds, whatever the disk and the host did meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.effort import turns
from tests.support.gated import answer
from tests.support.recorder import Recorder
from tests.support.rows import assistant, feed, hook, tool_session, user
from tests.support.saved import saved
from tests.support.views import untimed
from tests.support.virtual import Threads, run_virtually

pytestmark = pytest.mark.usefixtures("no_hang")
SMALL: dict[str, Any] = {"segment_tokens": 64, "keep_recent": 4, "prefetch": False}
LARGE = 10**6

SYSTEM: JsonRow = {"role": "system", "content": "Be brief."}
Rows = list[JsonRow]
NOW: JsonRow = {**user("now"), "ephemeral": True}
OURS: Rows = [SYSTEM, user("hello"), {**assistant("hi"), "name": None}, hook("note"), user("and now?")]


def manager(path: Path, coordinator: Any = None) -> SummarizingContextManager:
    return SummarizingContextManager(coordinator, persistence={"path": str(path)}, **SMALL)


@asynccontextmanager
async def session(path: Path, coordinator: Any = None) -> AsyncIterator[SummarizingContextManager]:
    made = manager(path, coordinator)
    yield made
    await made.close()


async def kept(path: Path) -> Rows:
    """What the next session finds."""
    async with session(path) as made:
        return untimed(await made.get_messages())


async def filled(path: Path, rows: Rows) -> Rows:
    """A session that had these rows, and has ended."""
    async with session(path) as made:
        await feed(made, rows)
    return rows


def threads() -> set[threading.Thread]:
    """Threads other than the event loop's own."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


@pytest.mark.parametrize("first", ["get_messages", "get_messages_for_request", "get_token_count", "statistics"])
async def test_the_next_session_finds_every_row(path, first):
    """But ephemeral ones; system rows, hook rows and None values too, whatever the host asks for first."""
    rows = [*OURS, *tool_session(3)]
    await filled(path, [*rows, NOW, {**user("now"), "metadata": {"ephemeral": True}}])
    plain = await feed(SummarizingContextManager(**SMALL), rows)
    async with session(path) as made:
        await getattr(made, first)()
        assert made.messages == await made.get_messages()
        assert untimed(made.messages) == rows
        assert await made.get_token_count() == await plain.get_token_count() > 0
        assert await made.get_messages_for_request(LARGE) == await plain.get_messages_for_request(LARGE)


@pytest.mark.parametrize(
    ("host", "file"),
    [
        (Recorder(session_id="parent-span_agent.x"), "parent-span_agent.x"),
        (Recorder(session_id="../../etc/passwd"), ".._.._etc_passwd-3754d6cb"),
        (Recorder(session_id="a\\b:c\0d"), "a_b_c_d-9e569bc7"),
        (Recorder(session_id=".."), "session"),
        (Recorder(session_id=""), "session"),
        (Recorder(session_id=None), "session"),
        (None, "session"),
    ],
)
async def test_the_sessions_id_stands_in_the_path(tmp_path, host, file):
    """As far as a file name can hold it: it leads nowhere else. Scripts have a name all the same."""
    for path in (tmp_path / "{session_id}.jsonl", tmp_path / "{session_id}" / "h.jsonl"):
        async with session(path, host) as made:
            await made.add_message(user("a"))
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jsonl")}
    assert found == {f"{file}.jsonl", f"{file}/h.jsonl"}


async def test_two_sessions_share_no_file(tmp_path):
    """Their ids differ only in signs that no file name should have."""
    path, (slash, colon) = tmp_path / "{session_id}.jsonl", (Recorder(session_id=f"tenant{sign}a") for sign in "/:")
    for host in (slash, colon):
        async with session(path, host) as made:
            await made.add_message(user(host.session_id))
    for host in (slash, colon):
        async with session(path, host) as made:
            assert untimed(await made.get_messages()) == [user(host.session_id)]


def test_a_long_file_is_read_and_taken_in_by_threads(path):
    """The loop goes on while they read it, and while they make a history of its rows."""
    disk, rows = Threads(), tool_session(50)
    run_virtually(filled(path, rows))

    async def run() -> None:
        async with session(path) as made:
            disk.hang()
            asking = await started(made.get_messages(), 20)
            for _ in ("the file", "its rows"):
                assert not asking.done()
                disk.go_on()
                disk.hang()
                await asyncio.sleep(0.01)
            disk.go_on()
            assert untimed(await asking) == rows

    run_virtually(run(), disk)


async def started(work: Coroutine[Any, Any, Any], turns: int) -> asyncio.Task[Any]:
    """The task of a call that has begun so many turns ago."""
    task = asyncio.create_task(work)
    for _ in range(1 + turns):
        await asyncio.sleep(0)
    return task


OLD, NEW = [SYSTEM, *tool_session(2)], [user("another"), assistant("history")]


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(
    ("method", "given", "after"),
    [
        ("add_message", [user("more")], [*OLD, user("more")]),
        ("set_messages", [NEW], [SYSTEM, *NEW]),
        ("set_messages", [[*OLD, *NEW]], [*OLD, *NEW]),
        ("clear", [], []),
        ("get_messages_for_request", [LARGE], OLD),
    ],
)
async def test_cancelled_at_any_turn_memory_and_disk_agree_and_what_has_returned_is_kept(
    tmp_path, method, given, after, loaded
):
    """The change is there or it is not, here and in the next session alike, however this one ends."""
    outcomes = []
    with Threads(turns=2).in_place():
        for after_turns in turns():
            path = tmp_path / f"{after_turns}.jsonl"
            await filled(path, OLD)
            async with session(path) as made:
                if loaded:
                    await made.get_messages()
                task = await started(getattr(made, method)(*given), after_turns)
                if ended := task.done():
                    left = Path(shutil.copy(path, tmp_path / "left.jsonl"))
                    assert await kept(left) == after
                task.cancel()
                await asyncio.wait([task])
                rows = untimed(await made.get_messages())
                assert rows in (OLD, after)
                await made.add_message(user("last"))
            assert await kept(path) == [*rows, user("last")]
            outcomes.append(rows)
            if ended:
                break
    assert outcomes[-1] == after
    assert len(outcomes) > 1, "it was never cancelled"
    assert ended


@pytest.mark.parametrize("turns", [0, 200])
async def test_what_the_hosts_copy_has_kept_of_ours_is_ignored(path, turns):
    """System rows and None values stay; a row of the moment is added. The file is as it was, however long."""
    ours = await filled(path, [*OURS, *tool_session(turns)])
    before = path.read_bytes()
    async with session(path) as made:
        for copy, found in ((saved(ours), ours), (saved(ours), ours), (ours, ours), ([*ours, NOW], [*ours, NOW])):
            await made.set_messages(copy)
            assert untimed(await made.get_messages()) == found
    assert path.read_bytes() == before
    assert [*path.parent.glob("history.20*.jsonl")] == []


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("is_cleared", [True, False])
async def test_any_other_copy_is_a_repair(path, is_loaded, is_cleared):
    """As given, after our system rows unless they were cleared; the old file is kept beside the new one."""
    ours = await filled(path, OURS)
    theirs = [*saved(ours)[:1], assistant("hi there")]
    async with session(path) as made:
        if is_loaded:
            await made.get_messages()
        if is_cleared:
            await made.clear()
            assert await made.get_messages() == []
            await made.add_message(SYSTEM)
        await made.set_messages(theirs)
        found = theirs if is_cleared else [SYSTEM, *theirs]
        assert untimed(await made.get_messages()) == found
        await made.add_message(user("next"))
    assert await kept(path) == [*found, user("next")]
    archived = [await kept(archive) for archive in path.parent.glob("history.20*.jsonl")]
    assert archived == [ours] or (is_cleared and ours in archived)


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("rows", [[*tool_session(199), user("repaired")], []], ids=["a repair", "none"])
async def test_rows_that_come_while_it_is_replaced_follow_on_the_disk_too(path, rows, is_loaded):
    """While the file is still being read, or a long copy is compared in a thread."""
    await filled(path, tool_session(200))
    async with session(path) as made:
        if is_loaded:
            await made.get_messages()
        replacing = await started(made.set_messages(rows) if rows else made.clear(), 0)
        assert not replacing.done() or (is_loaded and not rows)
        await made.add_message(user("meanwhile"))
        await replacing
        assert untimed(await made.get_messages()) == [*rows, user("meanwhile")]
    assert await kept(path) == [*rows, user("meanwhile")]


async def test_a_path_that_cannot_be_written_costs_one_warning(tmp_path, warnings):
    (tmp_path / "file").write_text("mine")
    async with session(tmp_path / "file" / "h.jsonl") as made:
        await feed(made, tool_session(12))
        assert 0 < len(await made.get_messages_for_request(900, ScriptedProvider(then=answer))) < 48
        await made.set_messages(tool_session(2))
        assert untimed(await made.get_messages()) == tool_session(2)
        await made.clear()
        assert await made.get_messages() == []
    [warning] = warnings()
    assert "in memory" in warning
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("used", ["not at all", "loading", "in full"])
async def test_at_the_end_no_thread_and_no_task_is_left(path, used):
    await filled(path, tool_session(2))
    before, made = threads(), manager(path)
    if used != "not at all":
        request = await started(made.get_messages_for_request(LARGE), 0)
    if used == "in full":
        await request
        await made.add_message(user("more"))
    await made.close()
    if used != "not at all":
        assert untimed(await request) == tool_session(2)
    for thread in threads() - before:
        thread.join(10)  # its last work is done: it ends by itself
    assert threads() <= before
    assert await made.get_messages() or used == "not at all"
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("add_message", [user("more")]),
        ("set_messages", [[user("more")]]),
        ("set_messages", [[user("first")]]),
        ("clear", []),
    ],
    ids=["a row", "a repair", "a copy with nothing new", "nothing"],
)
def test_a_call_returns_when_the_system_has_its_rows(path, method, given):
    """And the rows of the calls before it. In virtual time: it passes only while all wait."""
    disk = Threads()

    async def run() -> None:
        async with session(path) as made:
            await made.get_messages()
            disk.hang()
            adding = await started(made.add_message(user("first")), 0)
            acknowledged = await started(getattr(made, method)(*given), 20)
            assert not adding.done()
            assert not acknowledged.done()
            disk.go_on()
            await asyncio.gather(adding, acknowledged)

    run_virtually(run(), disk)
