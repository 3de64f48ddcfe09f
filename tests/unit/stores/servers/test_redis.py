"""The store on Redis, against a real server: the contract, and a server that works."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from context_summarize.stores.shared import BATCH, SharedStore
from tests.contracts import test_stores as contract
from tests.contracts.factories import keys, record, summary
from tests.contracts.servers import RecordsOnAServer, SummariesOnAServer
from tests.support.redis_server import RedisServer, redis_server


class TestSummariesInRedis(SummariesOnAServer):
    pass


class TestRecordsInRedis(RecordsOnAServer):
    pass


class TestUseOfRedis(contract.TestUse):
    pass


async def commands(server: RedisServer, name: str) -> int:
    """How many commands of one name the server has served."""
    from redis.asyncio import Redis

    async with Redis.from_url(server.address) as client:
        return int((await client.info("commandstats")).get(f"cmdstat_{name}", {}).get("calls", 0))


async def test_entries_outlive_the_object_and_are_seen_by_others(server: RedisServer) -> None:
    """A new process, or another machine, finds them."""
    first, second = SharedStore(server.address), SharedStore(server.address)
    assert await second.get(["a"]) == {}
    await first.put(summary("a"))
    await first.put_record(record("d"))
    assert await second.get(["a"]) == {"a": summary("a")}
    await first.close()
    await second.close()
    third = SharedStore(server.address)
    assert await third.find_records(["d"]) == [record("d")]
    await third.close()


async def test_entries_go_after_ninety_days(server: RedisServer, store: SharedStore) -> None:
    """The server counts down."""
    from redis.asyncio import Redis

    await store.put(summary("a"))
    await store.put_record(record("d"))
    async with Redis.from_url(server.address) as client:
        lives = [await client.ttl(key) for key in await client.keys("*")]
    assert len(lives) == 2
    assert all(0 < 90 * 86_400 - life < 3_600 for life in lives)


async def test_a_long_history_is_looked_up_in_few_requests(server: RedisServer, store: SharedStore) -> None:
    """Ten thousand hashes in twenty; a match among the longest ones ends the search."""
    hashes = keys(10_000)
    assert await store.find_records(hashes) == []
    assert await commands(server, "mget") == 10_000 // BATCH
    await store.put_record(record(hashes[7]))
    assert await store.find_records(hashes) == [record(hashes[7])]
    assert await commands(server, "mget") == 10_000 // BATCH + 1
    assert await commands(server, "get") == 0


async def test_an_entry_that_cannot_be_read_is_ignored(server: RedisServer, store: SharedStore) -> None:
    """The next put replaces it."""
    from redis.asyncio import Redis

    for key in "abcd":
        await store.put(summary(key))
        await store.put_record(record(key))
    async with Redis.from_url(server.address, decode_responses=True) as client:
        for name in await client.keys("*"):
            whole = str(await client.get(name))
            cut = whole.replace('\\"format\\"', '\\"form\\"')
            assert cut != whole
            await client.set(name, {"a": "no JSON", "b": cut, "c": "{}", "d": whole}[str(name)[-1]])
    assert (await store.get(list("abcd"))).keys() == {"d"}
    assert [found.hash for found in await store.find_records(list("abcd"))] == ["d"]
    await store.put(summary("a"))
    assert (await store.get(["a"])).keys() == {"a"}


async def test_a_password_with_special_characters_is_understood(tmp_path: Path, no_hang: None) -> None:
    """Percent-encoded, as addresses are."""
    with redis_server(tmp_path, password="p@ss/w:rd") as server:
        store = SharedStore(f"redis://:p%40ss%2Fw%3Ard@127.0.0.1:{server.port}/0")
        await store.put(summary("a"))
        assert (await store.get(["a"])).keys() == {"a"}
        await store.close()


async def test_a_valkey_address_is_served_too(server: RedisServer) -> None:
    """It is the same protocol."""
    store = SharedStore(server.address.replace("redis://", "Valkey://"))
    await store.put(summary("a"))
    assert (await store.get(["a"])).keys() == {"a"}
    await store.close()


async def test_the_client_can_be_imported_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is opened by it, and what is missing is no error yet."""
    asked: list[str] = []

    def missing(name: str) -> None:
        asked.append(name)
        raise ImportError("No module named 'redis'")

    monkeypatch.setattr(importlib, "import_module", missing)
    store = SharedStore("redis://127.0.0.1:1/0")
    assert asked == []
    await store.prepare()
    assert asked == ["key_value.aio.stores.redis"]
