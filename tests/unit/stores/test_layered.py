"""Memory, memory over a store that may fail or hang, and the store on Redis, with the contract: a real server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from context_summarize import SummarizingContextManager
from context_summarize.errors import StoreUnavailable
from context_summarize.stores import LayeredStore, MemoryStore, SharedStore, SummaryStore
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Clock
from tests.support.redis_server import RedisServer, free_port, redis_server
from tests.support.rows import feed, tool_session
from tests.support.views import untimed
from tests.unit.stores import test_contract as contract
from tests.unit.stores.test_contract import summary

PASSWORD = "hunter2-and-more"


class Shaky:
    """A store that works, fails or hangs when it is told to, and records its calls."""

    def __init__(self) -> None:
        self.kept = MemoryStore()
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any) -> Any:
            self.calls.append((name, *given))
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            return await getattr(self.kept, name)(*given)

        return call


REFUSED = OSError("refused for user:hunter2")


def make(timeout: float = 30) -> tuple[LayeredStore, Any, Any]:
    shaky: Any = Shaky()
    clock = Clock()
    return LayeredStore(MemoryStore(), shaky, name="the shaky store", timeout=timeout, clock=clock), shaky, clock


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.levelname for line in caplog.records if line.name == "context_summarize.stores.layered"]


async def test_a_store_that_fails_is_left_alone_for_half_a_minute(caplog):
    """Memory serves what was put or read, with one warning that names the store and nothing that may be a secret."""
    store, shaky, clock = make()
    await store.put(summary("a"))
    await shaky.kept.put(summary("c"))
    assert await store.get(["a", "c"]) == {"a": summary("a"), "c": summary("c")}
    shaky.error = REFUSED
    shaky.calls.clear()
    for _ in range(3):
        assert await store.get(["a", "b", "c"]) == {"a": summary("a"), "c": summary("c")}
        assert await store.get_records(["d"]) == {}
        clock.time += 29.8 / 2
    assert shaky.calls == [("get", ["b"])]
    assert await store.get(["b"]) == {}
    assert shaky.calls == [("get", ["b"])] * 2
    [warning] = caplog.messages
    assert warning.startswith("the shaky store: OSError; meanwhile summaries are kept in memory")
    assert "hunter2" not in warning


async def test_a_store_that_hangs_costs_one_timeout(caplog, no_hang):
    """Twenty requests at once wait together, and the calls that follow do not wait at all."""
    store, shaky, _ = make(timeout=0.02)
    shaky.gate.clear()

    async def request(key: str) -> None:
        assert await store.get([f"no {key}"]) == {}
        await store.put(summary(key))
        assert await store.get([key]) == {key: summary(key)}
        assert await store.get_records(["d"]) == {}

    await asyncio.gather(*(request(str(at)) for at in range(20)))
    assert len(shaky.calls) == 20
    assert levels(caplog) == ["WARNING"]


async def test_an_entry_that_is_refused_holds_up_no_other_and_is_not_written_later():
    """A full disk refuses quickly, and can still be read."""
    store, shaky, _ = make()
    shaky.error = REFUSED
    await store.put(summary("large"))
    shaky.error = None
    await store.put(summary("a"))
    await store.close()
    assert (await shaky.kept.get(["large", "a"])).keys() == {"a"}
    assert (await store.get(["large"])).keys() == {"large"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as made:
        yield made


@pytest.fixture
async def server(running: RedisServer, no_hang: None) -> RedisServer:
    """It holds nothing."""
    async with Redis.from_url(running.address) as client:
        await client.flushall()
    return running


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[SummaryStore]:
    """What the contract is run with."""
    made = SharedStore(server.address)
    yield made
    await made.close()


class TestRedis(contract.TestContract):
    pass


def layered(address: str, clock: Clock, timeout: float = 30) -> LayeredStore:
    shared = SharedStore(address)
    return LayeredStore(MemoryStore(), shared, name=shared.name, timeout=timeout, clock=clock)


async def test_a_session_serves_every_request_whatever_the_server_does(server, caplog):
    """Then a new session adopts the compaction without a call. Entries go after ninety days."""
    caplog.set_level(logging.INFO, "context_summarize.stores")
    settings = {"keep_recent": 4, "segment_tokens": 64, "prefetch": False}
    provider, clock, rows = ScriptedProvider(then="Goal: look up orders."), Clock(), tool_session(40)
    context = SummarizingContextManager(config=settings, store=layered(server.address, clock, timeout=0.3))
    trouble = {8: server.freeze, 16: server.kill, 24: server.start}
    for at in range(40):
        if at in trouble:
            trouble[at]()
            clock.time += 31
        await feed(context, rows[4 * at : 4 * at + 4])
        view = await context.get_messages_for_request(token_budget=1_500, provider=provider)
        assert view[-1]["content"] == rows[4 * at + 3]["content"]
    assert untimed(await context.get_messages()) == rows
    assert levels(caplog) == ["WARNING", "INFO"]
    await context.close()

    asked, address = provider.calls, server.address.replace("redis://", "Valkey://")
    again = SummarizingContextManager(config=settings, store=layered(address, clock))
    await again.set_messages(rows)
    assert await again.get_messages_for_request(token_budget=1_500, provider=provider) == view
    assert provider.calls == asked > 0
    await again.close()
    async with Redis.from_url(server.address) as client:
        lives = [await client.ttl(key) for key in await client.keys("*")]
    assert lives
    assert all(0 <= 90 * 86_400 - life < 3_600 for life in lives)


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("redis://user:{password}@127.0.0.1:{port}/0", id="wrong password"),
        pytest.param("redis://user:{password}@no-such-host.invalid/0", id="unknown host"),
        pytest.param("redis://127.0.0.1:{port}/0?pasword={password}", id="unknown option"),
        pytest.param("redis://user:{password}@127.0.0.1:none/0", id="no port"),
        pytest.param("postgresql://user:{password}@127.0.0.1:{free}/x", id="postgresql"),
    ],
)
async def test_an_address_that_leads_nowhere_is_told_without_its_password(address, server, caplog):
    """Memory serves, with one warning; no line of the log, of any library, holds the password."""
    caplog.set_level(logging.DEBUG)
    shared = SharedStore(address.format(password=PASSWORD, port=server.port, free=free_port()))
    with pytest.raises(StoreUnavailable) as raised:
        await shared.get(["a"])
    assert PASSWORD not in str(raised.value)
    store = LayeredStore(MemoryStore(), shared, name=shared.name)
    for name in "abc":
        await store.put(summary(name))
    assert (await store.get(["a", "x"])).keys() == {"a"}
    await store.close()
    assert levels(caplog) == ["WARNING"]
    assert f"{shared.name}: " in caplog.text
    assert PASSWORD not in caplog.text
    assert all(PASSWORD not in repr(vars(line)) for line in caplog.records)
