"""The end of a session: providers are cleaned up before the context, so what is under way is waited for earlier."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider
from tests.support.gated import Gate, Gated, answer, settle
from tests.support.recorder import Recorder
from tests.support.rows import feed, tool_session
from tests.support.session import SMALL, Host
from tests.support.virtual import Threads, run_virtually


async def prefetching(hosts: Any, gate: Gate, store: Path) -> Host:
    """A session whose first summary is being made ahead: one call at a time, so all others wait for their turn."""
    host: Host = await hosts({"max_concurrency": 1, "cache": str(store)}, summary=gate)
    host.loop.is_patient = False
    await host.talk(9)
    async with asyncio.timeout(30):
        await gate.asked.wait()
    assert not host.seen("context:compaction")
    return host


async def test_what_is_under_way_at_the_end_is_waited_for_and_stored(hosts, tmp_path, caplog):
    """The next process asks for nothing again."""
    caplog.set_level(logging.WARNING)
    gate, store = Gate(), tmp_path / "store.sqlite"
    host = await prefetching(hosts, gate, store)
    rows, asked = await host.context.get_messages(), list(host.provider.summary_requests)
    end = asyncio.create_task(host.end())
    await settle()
    gate.go.set()
    await asyncio.wait_for(end, 30)

    assert host.provider.cancelled == 0
    assert len(host.provider.summary_requests) == len(asked), "nothing is begun at the end"
    assert len(host.seen("context-summarize:summary")) == len(asked)
    assert caplog.records == []
    again = await hosts({"cache": str(store)})
    await again.context.set_messages(rows)
    await again.context.compact()
    texts = [str(request.messages[1].content) for request in asked]
    assert not [request for request in again.provider.requests if str(request.messages[1].content) in texts]


def test_what_takes_longer_ends_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def run() -> None:
        host, provider = Recorder(), Gated()
        made = await feed(SummarizingContextManager(host, **SMALL), tool_session(40))
        await made.get_messages_for_request(100_000, provider)
        compacting = asyncio.create_task(made.compact())
        await provider.asked.wait()
        await made.finish()
        await made.close()
        await compacting
        assert host.count("context-summarize:failure") == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtually(run())
    assert caplog.records == []


async def test_a_host_that_has_cancelled_waits_for_nothing(hosts, tmp_path):
    host = await prefetching(hosts, Gate(), tmp_path / "store.sqlite")
    host.session.coordinator.cancellation.request_immediate()
    await asyncio.wait_for(host.end(), 3)


async def test_a_short_session_pays_for_no_summary_and_one_that_goes_on_has_its_first_ones_in_time(hosts):
    """As those of sub-agents stay short."""
    host = await hosts({"shorten_tool_results": "auto"})
    await host.talk(4)
    assert host.provider.summary_requests == []
    await host.talk(8)
    assert len(host.provider.summary_requests) > 0
    assert (await host.context.statistics()).waits == 0


class Stuck(Recorder):
    """A host in which all hangs, once the session ends: hooks, the store, and a provider that ignores cancellations."""

    def __init__(self) -> None:
        super().__init__()
        self.ends, self.go, self.asked = False, asyncio.Event(), 0

    async def emit(self, name: str, data: JsonRow) -> None:
        await self.hang()

    async def hang(self) -> None:
        while self.ends and not self.go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.go.wait()

    async def answer(self, request: ChatRequest) -> str:
        self.asked += 1
        await asyncio.sleep(self.asked)  # the first comes while the session ends
        await self.hang()
        return answer(request)


class StuckStore(MemoryStore):
    """A store that hangs with its host."""

    def __init__(self, host: Stuck) -> None:
        super().__init__()
        self.put = self.put_record = self.close = lambda *_: host.hang()  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(("finishes", "most"), [(True, 5), (False, 2)], ids=["finish and close", "close alone"])
def test_the_whole_end_takes_five_seconds_whatever_hangs(tmp_path: Path, finishes: bool, most: float) -> None:
    """In virtual time. Some hosts do not tell of the end before they clean up."""
    disk = Threads()

    async def run() -> None:
        loop, host = asyncio.get_running_loop(), Stuck()
        file = {"path": str(tmp_path / "history.jsonl")}
        made = SummarizingContextManager(host, store=StuckStore(host), persistence=file, segment_tokens=512)
        await feed(made, tool_session(40))
        await made.get_messages_for_request(100_000, ScriptedProvider(then=host.answer))
        compacting = asyncio.create_task(made.compact())
        while not host.asked:  # noqa: ASYNC110 - the provider has no event for it
            await asyncio.sleep(0)
        host.ends, began = True, loop.time()
        disk.hang()
        try:
            async with asyncio.timeout(60):
                if finishes:
                    await made.finish()
                await made.close()
            assert 0.85 * most < loop.time() - began <= most
        finally:
            host.go.set()
            disk.go_on()
        await compacting

    run_virtually(run(), disk)
