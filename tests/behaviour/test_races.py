"""Cancellation at every await, and whatever the host does while summaries are under way: nothing stale, no leak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.events import Outbox
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider
from tests.support.effort import turns
from tests.support.gated import Gated, answer, questions, settle
from tests.support.inside import shown_keys
from tests.support.recorder import Recorder, SlowHooks
from tests.support.rows import feed, tool_session, user
from tests.support.views import nodes, size, untimed
from tests.support.virtual import run_virtually

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False}
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


@dataclass
class Session:
    """A manager just before a compaction, with all that it works with."""

    manager: SummarizingContextManager
    recorder: Recorder
    provider: ScriptedProvider
    rows: Rows
    budget: int
    store: MemoryStore

    def request(self) -> Coroutine[Any, Any, Rows]:
        return self.manager.get_messages_for_request(self.budget, self.provider)

    def events(self) -> tuple[int, int, int]:
        return (
            self.recorder.count("context:pre_compact"),
            self.recorder.count("context:post_compact"),
            self.recorder.count("context:compaction"),
        )


@dataclass(frozen=True)
class Setup:
    """What a session is made of."""

    hooks: type[Recorder] = Recorder
    store: type[MemoryStore] = MemoryStore
    provider: Callable[..., ScriptedProvider] = ScriptedProvider
    factory: bool = False
    then: Any = answer
    budget: int = 900
    turns: int = 12
    earlier: int = 0
    """Rows after which a first view was served, with its compaction."""
    resumed: bool = False
    """The compaction was recorded by another manager, and is to be adopted."""
    settings: tuple[tuple[str, Any], ...] = ()

    async def session(self) -> Session:
        rows = tool_session(self.turns)
        store, provider = self.store(), self.provider(then=self.then)
        manager = await self.manager(Recorder(), store)
        if self.resumed:
            await manager.set_messages(rows)
            await manager.get_messages_for_request(self.budget, provider)
            await manager.close()
        recorder = self.hooks()
        manager = await self.manager(recorder, store)
        if self.earlier:
            await manager.set_messages(rows[: self.earlier])
            await manager.get_messages_for_request(self.budget, provider)
        await manager.set_messages(rows)
        return Session(manager, recorder, provider, rows, self.budget, store)

    async def manager(self, recorder: Recorder, store: MemoryStore) -> SummarizingContextManager:
        made = SummarizingContextManager(recorder, store=store, keep_recent=4, **SMALL, **dict(self.settings))
        if self.factory:
            await made.set_system_prompt_factory(prompt)
        return made


SETUPS = {
    "plain": Setup(),
    "a store that awaits": Setup(store=SlowStore),
    "all of them": Setup(hooks=SlowHooks, store=SlowStore, provider=AsksAround, factory=True),
    "merges": Setup(hooks=SlowHooks, store=SlowStore, turns=24, settings=(("summary_share", 0.1),)),
    "a second compaction": Setup(hooks=SlowHooks, store=SlowStore, earlier=26, turns=20),
    "a record to adopt": Setup(hooks=SlowHooks, store=SlowStore, resumed=True),
    "a view that must fit": Setup(hooks=SlowHooks, store=SlowStore, budget=300),
    "a view that cannot fit": Setup(hooks=SlowHooks, store=SlowStore, budget=60),
    "a provider that fails": Setup(hooks=SlowHooks, store=SlowStore, then=ValueError("a bug of the provider's")),
}
every_setup = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


async def cancelled_after(work: Coroutine[Any, Any, Any], steps: int) -> asyncio.Task[Any]:
    """The task of this work, cancelled after so many turns of the event loop unless it had ended before."""
    task = asyncio.create_task(work, name="the host's request")
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return task


class TestCancelledAtEveryAwait:
    @every_setup
    async def test_a_request_is_all_or_nothing_and_its_retry_is_like_one_that_was_not_cancelled(
        self, setup: Setup
    ) -> None:
        """Rules 8 to 10: for every turn of the event loop at which the host may give up."""
        plain = await setup.session()
        whole = await plain.request()
        shown_after = shown_keys(plain.manager)
        asked, events = sorted(questions(plain.provider)), plain.events()
        await plain.manager.close()
        fails = isinstance(setup.then, Exception)
        cancelled = 0
        for steps in turns():
            session = await setup.session()
            shown_before = shown_keys(session.manager)
            task = await cancelled_after(session.request(), steps)
            assert untimed(await session.manager.get_messages()) == session.rows
            assert shown_keys(session.manager) in (shown_before, shown_after)
            if task.cancelled():
                cancelled += 1
            else:
                assert task.result() == whole
            assert await session.request() == whole
            assert await session.request() == whole
            if not fails:
                assert len(set(questions(session.provider))) == session.provider.calls
                assert sorted(questions(session.provider)) == asked
            assert session.events() == events
            keys = [data["key"] for data in session.recorder.of("context-summarize:summary")]
            assert len(keys) == len(set(keys))
            await session.manager.close()
            await asyncio.sleep(0)
            assert ours() == []
            if not task.cancelled():
                break
        assert cancelled > 1
        assert not task.cancelled(), "the request never came to its end"


async def waiting(setup: Setup | None = None) -> tuple[Session, Gated, asyncio.Task[Rows]]:
    """A session whose request waits for summaries."""
    session = await (setup or Setup(hooks=SlowHooks, provider=lambda then: Gated(then))).session()
    assert isinstance(session.provider, Gated)
    task = asyncio.create_task(session.request(), name="the host's request")
    await session.provider.asked.wait()
    return session, session.provider, task


class TestWhileSummariesAreUnderWay:
    @pytest.mark.parametrize("how", ["clear", "truncate", "change", "another"])
    async def test_a_history_that_is_replaced_has_no_stale_node(self, how: str) -> None:
        """The view is the one that the new history has for a manager that never saw the old one."""
        session, provider, task = await waiting()
        made = session.manager
        rows: Rows = {
            "clear": [],
            "truncate": session.rows[:20],
            "change": [user("Something else altogether."), *session.rows[1:]],
            "another": tool_session(12, start=500),
        }[how]
        await (made.clear() if how == "clear" else made.set_messages(rows))
        provider.go.set()
        view = await task
        plain = SummarizingContextManager(keep_recent=4, **SMALL)
        await plain.set_messages(rows)
        assert view == await plain.get_messages_for_request(900, ScriptedProvider(then=answer))
        assert untimed(await made.get_messages()) == rows
        assert len(set(questions(provider))) == provider.calls
        pre, post, _ = session.events()
        assert pre == post
        await settle()
        await plain.close()
        await settle()
        assert ours() == []
        await made.close()

    async def test_a_compaction_on_demand_goes_on_with_the_new_history(self) -> None:
        """`compact()` never fails because the history was replaced while it waited."""
        made, provider = SummarizingContextManager(keep_recent=4, **SMALL), Gated()
        await made.set_messages(tool_session(12))
        provider.go.set()
        await made.get_messages_for_request(2_000, provider)
        provider.go.clear()
        await feed(made, tool_session(12, start=100))
        provider.asked.clear()
        compacting = asyncio.create_task(made.compact())
        await provider.asked.wait()
        rows = tool_session(9, start=500)
        await made.set_messages(rows)
        provider.go.set()
        assert await compacting >= 0
        assert untimed(await made.get_messages()) == rows
        await made.close()

    async def test_a_failure_of_a_request_that_was_cancelled_is_not_kept_over_a_clear(self) -> None:
        """Whatever went wrong before: after `clear()` a provider that is well again is asked."""
        bad = Gated(then=ValueError("a bug of the provider's"))
        good, recorder = ScriptedProvider(then=answer), Recorder()
        made = SummarizingContextManager(recorder, keep_recent=4, **SMALL)
        await made.set_messages(tool_session(12))
        task = asyncio.create_task(made.get_messages_for_request(900, bad))
        await bad.asked.wait()
        task.cancel()
        await asyncio.wait([task])
        bad.go.set()
        await settle()
        await made.clear()
        await made.set_messages(tool_session(12))
        await made.get_messages_for_request(900, good)
        fallbacks = recorder.of("context:post_compact")[-1]["fallbacks"]
        await made.close()
        assert fallbacks == 0


class Stubborn(Gated):
    """Swallows the first cancellation, as a client that cleans up at its leisure."""

    async def complete(self, request: ChatRequest, **kwargs: Any) -> Any:
        try:
            return await super().complete(request, **kwargs)
        except asyncio.CancelledError:
            await self.go.wait()
            raise


class TestSessionEnd:
    @pytest.mark.parametrize("kind", [Gated, Stubborn])
    def test_it_ends_within_a_second_though_the_provider_hangs(self, kind: type[Gated]) -> None:
        """Also one that swallows its cancellation; nothing of ours is left. Hosts call cleanup on every way out."""

        async def end() -> None:
            session, provider, task = await waiting(Setup(provider=lambda then: kind(then)))
            task.cancel()
            await asyncio.wait([task])
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.gather(session.manager.close(), session.manager.close())
            assert loop.time() - began <= 1
            provider.go.set()
            await settle()
            assert ours() == []
            assert kind is Stubborn or provider.cancelled == provider.calls

        run_virtually(end())


class TestNoWaiting:
    @pytest.mark.parametrize("how", ["the host stops waiting", "wait_seconds is 0"])
    async def test_a_view_that_does_not_fit_is_served_at_once_and_the_work_goes_on(self, how: str) -> None:
        """Fallbacks stand in; the late summaries are shown at the next compaction, without a second call."""
        wait = 0 if how == "wait_seconds is 0" else 60
        setup = Setup(
            budget=300, provider=lambda then: Gated(then), settings=(("wait_seconds", wait), ("summary_share", 0.5))
        )
        session, provider, task = await waiting(setup)
        if wait:
            await session.manager.stop_waiting()
        view = await asyncio.wait_for(task, 30)
        assert size(view) <= 300
        assert nodes(view)
        assert session.recorder.of("context:post_compact")[-1]["fallbacks"] == len(nodes(view))
        assert provider.cancelled == 0
        provider.go.set()
        await settle()
        assert await session.request() == view, "nothing has come: the view stays"
        asked = questions(provider)
        await feed(session.manager, tool_session(4, start=30))
        await session.request()
        await settle()
        await session.manager.add_message(user("And now? " * 40))
        await session.request()
        counts = [data["fallbacks"] for data in session.recorder.of("context:post_compact")]
        assert counts[-1] == 0 if wait else counts[-1] < counts[0]
        assert not set(asked) & set(questions(provider)[len(asked) :])
        await session.manager.close()


def test_a_look_does_not_revive_a_wait_that_the_host_has_ended() -> None:
    """The request is answered, though `should_compact()` asks at once whether there would be another compaction."""

    async def look() -> None:
        setup = Setup(budget=300, provider=lambda then: Gated(then), settings=(("wait_seconds", 600),))
        session, provider, task = await waiting(setup)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await session.manager.stop_waiting()
        await session.manager.should_compact()
        await task
        assert loop.time() - began < 1
        provider.go.set()
        await session.manager.close()

    run_virtually(look())


async def test_hooks_hear_events_in_order_whoever_flushes() -> None:
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


def test_an_event_loop_that_ends_with_a_call_under_way_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A script that forgets `close()`: asyncio cancels the call, and nobody is to hear of it."""

    async def forgetful() -> None:
        manager = SummarizingContextManager(wait_seconds=0, keep_recent=2)
        await manager.set_messages(tool_session(30))
        await manager.get_messages_for_request(4_000, ScriptedProvider(gate=asyncio.Event()))
        await settle()

    asyncio.run(forgetful())
    assert [record for record in caplog.records if record.name == "asyncio"] == []
