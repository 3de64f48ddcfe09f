"""The store on Redis, against a real server: the contract, what the server holds, and a server that is away."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from context_summarize import SummarizingContextManager
from context_summarize.errors import StoreUnavailable
from context_summarize.stores import LayeredStore, MemoryStore, SharedStore, SummaryStore
from context_summarize.testing import ScriptedProvider
from tests.contracts import test_stores as contract
from tests.contracts.factories import record, summary
from tests.support.recorder import Clock
from tests.support.redis_server import RedisServer, free_port, redis_server
from tests.support.rows import feed, tool_session
from tests.support.views import untimed

PASSWORD = "hunter2-and-more"
HANG = 0.3  # timeout in seconds where the server hangs; far more than one that works takes


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


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.levelname for line in caplog.records if line.name == "context_summarize.stores.layered"]


async def test_entries_are_seen_by_others_and_go_after_ninety_days(server: RedisServer) -> None:
    """Another process or machine finds them; the server counts down."""
    first, second = SharedStore(server.address), SharedStore(server.address.replace("redis://", "Valkey://"))
    assert await second.get(["a"]) == {}
    await first.put(summary("a"))
    await first.put_record("d", record())
    assert await second.get(["a"]) == {"a": summary("a")}
    assert await second.get_records(["d"]) == {"d": record()}
    async with Redis.from_url(server.address) as client:
        lives = [await client.ttl(key) for key in await client.keys("*")]
    assert [90 * 86_400 - life < 3_600 for life in lives] == [True, True]
    await first.close()
    await second.close()


async def test_a_session_serves_every_request_whatever_the_server_does(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "context_summarize.stores")
    settings = {"keep_recent": 4, "segment_tokens": 64, "prefetch": False}
    provider, clock, rows = ScriptedProvider(then="Goal: look up orders."), Clock(), tool_session(40)
    context = SummarizingContextManager(config=settings, store=layered(server.address, clock, HANG))
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

    asked = provider.calls
    again = SummarizingContextManager(config=settings, store=layered(server.address, clock))
    await again.set_messages(rows)
    assert await again.get_messages_for_request(token_budget=1_500, provider=provider) == view
    assert provider.calls == asked > 0
    await again.close()


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
async def test_an_address_that_leads_nowhere_is_told_without_its_password(
    address: str, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
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
