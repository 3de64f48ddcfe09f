"""Cancellation at every await, and whatever the host does while summaries are under way: nothing stale, no leak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from context_summarize import SummarizingContextManager
from context_summarize.events import Outbox
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider
from tests.support.effort import some, turns
from tests.support.gated import Gated, answer, questions, settle
from tests.support.inside import shown_keys
from tests.support.managed import Managed
from tests.support.recorder import Recorder, SlowHooks
from tests.support.rows import tool_session, user
from tests.support.views import nodes, size

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False, "keep_recent": 4}
Rows = list[JsonRow]


def slowly(name: str) -> Callable[..., Any]:
    """This method of a store, which takes a while before and after its work."""

    async def call(self: MemoryStore, *given: Any) -> Any:
        await asyncio.sleep(0)
        found = await getattr(MemoryStore, name)(self, *given)
        await asyncio.sleep(0)
        return found

    return call


class SlowStore(MemoryStore):
    """A store that takes a while."""

    get, put, get_records, put_record = map(slowly, ("get", "put", "get_records", "put_record"))


class AsksAround(ScriptedProvider):
    """Has to ask for its own window."""

    async def get_model_info(self) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"context_window": 40_000, "max_output_tokens": 4_000}


def failing() -> ScriptedProvider:
    return ScriptedProvider(then=ValueError("a bug of the provider's"))


async def prompt() -> str:
    """A system prompt that takes a while."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return "You are a helpful agent."


def ours() -> list[str]:
    """Names of the tasks beside the test's own."""
    return [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]


@pytest_asyncio.fixture(autouse=True)
async def _no_task_is_left() -> AsyncIterator[None]:
    yield
    await settle()
    assert ours() == []


async def ready(
    turns: int = 12,
    *,
    slow: bool = True,
    factory: bool = False,
    earlier: int = 0,
    resumed: bool = False,
    budget: int = 900,
    **given: Any,
) -> Managed:
    """A session just before a compaction.

    Args:
        slow: its hooks and its store take a while.
        earlier: rows after which a first view was served, with its compaction.
        resumed: the compaction was recorded by another manager, and is to be adopted.
    """
    rows, hooks, store = tool_session(turns), *((SlowHooks, SlowStore) if slow else (Recorder, MemoryStore))
    session = Managed(budget, host=hooks(), store=store(), **SMALL, **given)
    if factory:
        await session.manager.set_system_prompt_factory(prompt)
    if resumed:
        await (await session.take(rows)).view()
        session = await session.again(host=hooks())
    if earlier:
        await (await session.take(rows[:earlier])).view()
    return await session.take(rows)


SETUPS: dict[str, dict[str, Any]] = {
    "plain": {"slow": False},
    "all of them take a while": {"provider": lambda: AsksAround(then=answer), "factory": True},
    "merges": {"turns": 24, "summary_share": 0.1},
    "a second compaction": {"turns": 20, "earlier": 26},
    "a record to adopt": {"resumed": True},
    "a view that must fit": {"budget": 300},
    "a view that cannot fit": {"budget": 60},
    "a provider that fails": {"provider": failing},
}


def events(session: Managed) -> list[int]:
    return [session.host.count(f"context:{name}") for name in ("pre_compact", "post_compact", "compaction")]


@pytest.mark.parametrize("setup", some(SETUPS.values(), 2), ids=some(SETUPS, 2))
async def test_a_cancelled_request_is_all_or_nothing_and_its_retry_is_like_one_that_was_not_cancelled(setup):
    """Rules 8 to 10: for every turn of the event loop at which the host may give up."""
    plain = await ready(**setup)
    rows, whole = await plain.rows(), await plain.view()
    shown_after, asked = shown_keys(plain.manager), sorted(questions(plain.provider))
    await plain.manager.close()
    cancelled = 0
    for steps in turns():
        session = await ready(**setup)
        shown_before = shown_keys(session.manager)
        task = asyncio.create_task(session.view(), name="the host's request")
        for _ in range(steps):
            if not task.done():
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await session.rows() == rows
        assert shown_keys(session.manager) in (shown_before, shown_after)
        cancelled += task.cancelled()
        assert task.cancelled() or task.result() == whole
        assert await session.view() == whole
        assert await session.view() == whole
        if setup.get("provider") is not failing:
            assert len(set(questions(session.provider))) == session.provider.calls
            assert sorted(questions(session.provider)) == asked
        begun, ended, made = events(session)
        assert (begun, made) == (ended, events(plain)[2])
        keys = [data["key"] for data in session.host.of("context-summarize:summary")]
        assert len(keys) == len(set(keys))
        await session.manager.close()
        await asyncio.sleep(0)
        assert ours() == []
        if not task.cancelled():
            break
    assert cancelled > 1
    assert not task.cancelled(), "the request never came to its end"


async def waiting(**given: Any) -> tuple[Managed, asyncio.Task[Rows]]:
    """A session whose request waits for summaries."""
    session = await ready(**{"provider": Gated, **given})
    task = asyncio.create_task(session.view(), name="the host's request")
    await session.provider.asked.wait()
    return session, task


OLD = tool_session(12)


@pytest.mark.parametrize(
    "rows",
    [[], OLD[:20], [user("No."), *OLD[1:]], [user("No."), *OLD], tool_session(12, start=500)],
    ids=["none", "fewer", "changed", "one more before all others", "others"],
)
async def test_a_history_that_is_replaced_while_summaries_are_under_way_has_no_stale_node(rows):
    """The view is the one that the new history has for a manager that never saw the old one."""
    session, task = await waiting()
    await (session.take(rows) if rows else session.manager.clear())
    session.provider.go.set()
    plain = await Managed(900, **SMALL).take(rows)
    assert await task == await plain.view()
    assert await session.rows() == rows
    assert len(set(questions(session.provider))) == session.provider.calls
    assert events(session)[0] == events(session)[1]
    await plain.manager.close()
    await session.manager.close()


@pytest.mark.parametrize("wait", [60, 0], ids=["the host has cancelled", "wait_seconds is 0"])
async def test_a_view_that_does_not_fit_is_served_at_once_and_the_work_goes_on(wait):
    """Fallbacks stand in; the late summaries are shown at the next compaction, without a second call."""
    session, task = await waiting(budget=300, wait_seconds=wait, summary_share=0.5)
    session.host.is_cancelled = wait > 0
    view = await asyncio.wait_for(task, 30)
    session.host.is_cancelled = False
    assert size(view) <= 300
    assert nodes(view)
    assert session.host.of("context:post_compact")[-1]["fallbacks"] == len(nodes(view))
    assert session.provider.cancelled == 0
    session.provider.go.set()
    await settle()
    assert await session.view() == view, "nothing has come: the view stays"
    asked = questions(session.provider)
    await (await session.add(tool_session(4, start=30))).view()
    await settle()
    await (await session.add([user("And now? " * 40)])).view()
    counts = [data["fallbacks"] for data in session.host.of("context:post_compact")]
    assert counts[-1] == 0 if wait else counts[-1] <= counts[0]
    assert not set(asked) & set(questions(session.provider)[len(asked) :])
    await session.manager.close()


async def test_hooks_hear_events_in_order_whoever_flushes():
    """Also where the first hook takes longest, a flush is cancelled, and a hook itself asks for a request."""
    heard = list[str]()

    class Slow(Recorder):
        async def emit(self, name: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0.01 if name == "first" else 0)
            heard.append(name)
            await outbox.flush()

    outbox = Outbox(Slow())
    flushes = list[asyncio.Task[None]]()
    for name in ("first", "second", "third"):
        outbox.put(name, {})
        flushes.append(asyncio.create_task(outbox.flush()))
        await asyncio.sleep(0)
    flushes[0].cancel()
    await asyncio.wait(flushes)
    assert heard == ["first", "second", "third"]


def test_an_event_loop_that_ends_with_a_call_under_way_tells_nothing(caplog):
    """A script that forgets `close()`: asyncio cancels the call, and nobody is to hear of it."""

    async def forgetful() -> None:
        manager = SummarizingContextManager(wait_seconds=0, keep_recent=2)
        await manager.set_messages(tool_session(30))
        await manager.get_messages_for_request(4_000, ScriptedProvider(gate=asyncio.Event()))
        await settle()

    asyncio.run(forgetful())
    assert [record for record in caplog.records if record.name == "asyncio"] == []
