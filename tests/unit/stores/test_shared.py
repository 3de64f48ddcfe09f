"""The store on a server: contract, trouble and a session, against a real Redis; addresses and their secrets."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.errors import ConfigError, StoreUnavailable
from context_summarize.stores.address import is_shared_address, public_address
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.protocol import SummaryStore
from context_summarize.stores.servers import SCHEMES
from context_summarize.stores.shared import BATCH, SharedStore
from context_summarize.testing import ScriptedProvider, tool_session
from tests.contracts import test_stores as contract
from tests.contracts.factories import record, summary
from tests.support.recorder import Clock
from tests.support.redis_server import RedisServer, free_port, redis_server

LOG = "context_summarize.stores.guard"
HANG = 0.5
"""Timeout in seconds where the server hangs; far more than one that works takes."""

PASSWORD = "hunter2-and-more"


@pytest.fixture
def server(tmp_path: Path, no_hang: None) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The client is imported once, so that no test's timeout is spent on it."""
    importlib.import_module("key_value.aio.stores.redis")


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[SummaryStore]:
    """What the contract is run with."""
    made = SharedStore(server.address)
    yield made
    await made.close()


class Open:
    """Makes layered stores over Redis and closes them at the end; each with the shared clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.made: list[LayeredStore] = []

    def __call__(self, address: str, timeout: float = 30) -> LayeredStore:
        shared = SharedStore(address)
        layered = LayeredStore(MemoryStore(), shared, name=shared.name, timeout=timeout, clock=self.clock)
        self.made.append(layered)
        return layered


@pytest.fixture
async def layered() -> AsyncIterator[Open]:
    opened = Open()
    yield opened
    for store in opened.made:
        await store.close()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.levelname for line in caplog.records if line.name == LOG]


def keys(count: int) -> list[str]:
    return [hashlib.sha256(str(index).encode()).hexdigest() for index in range(count)]


# --- the contract ---------------------------------------------------------------------------------------------------


class SummariesOnAServer(contract.TestSummaries):
    async def test_a_new_store_holds_nothing(self, store: SummaryStore) -> None:
        """But nobody can know that, so it never says that it is empty."""
        assert await store.get(["a"]) == {}
        assert await store.find_records(["d"]) == []
        assert not await store.is_empty()


class RecordsOnAServer(contract.TestRecords):
    async def test_records_are_found_among_those_of_a_long_history(self, store: SummaryStore) -> None:
        """The longest one, and what else the same request to the server finds."""
        digests = keys(10_000)
        for index in (9_200, 9_100, 4_000):
            await store.put_record(record(digests[index], index))
        found = await store.find_records(digests[::-1])
        assert [each.frontier_group for each in found] == [9_200, 9_100]

    async def test_a_store_is_empty_until_a_compaction_is_recorded(self, store: SummaryStore) -> None:
        """It never says so: others may have put one."""
        assert not await store.is_empty()
        await store.put_record(record("d"))
        assert not await store.is_empty()


class TestSummariesInRedis(SummariesOnAServer):
    pass


class TestRecordsInRedis(RecordsOnAServer):
    pass


class TestOtherFormatsInRedis(contract.OtherFormats):
    pass


class TestUseOfRedis(contract.TestUse):
    pass


# --- a server that works --------------------------------------------------------------------------------------------


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
    digests = keys(10_000)
    assert await store.find_records(digests) == []
    assert await commands(server, "mget") == 10_000 // BATCH
    await store.put_record(record(digests[7]))
    assert await store.find_records(digests) == [record(digests[7])]
    assert await commands(server, "mget") == 10_000 // BATCH + 1
    assert await commands(server, "get") == 0


async def test_an_entry_that_cannot_be_read_is_ignored(server: RedisServer, store: SharedStore) -> None:
    """Whatever wrote it; the next put replaces it."""
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


async def test_the_client_can_be_imported_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
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


# --- a server in trouble --------------------------------------------------------------------------------------------


async def test_a_server_that_is_down_at_the_start_is_used_when_it_is_there(
    tmp_path: Path, layered: Open, caplog: pytest.LogCaptureFixture, no_hang: None
) -> None:
    """Memory meanwhile, one warning; then what was put meanwhile is written."""
    caplog.set_level(logging.INFO, LOG)
    with redis_server(tmp_path, started=False) as server:
        store = layered(server.address)
        await store.put(summary("a"))
        await store.put_record(record("d"))
        assert (await store.get(["a", "b"])).keys() == {"a"}
        assert said(caplog) == ["WARNING"]
        layered.clock.time += 31
        await store.is_empty()
        assert (await store.get(["a", "b"])).keys() == {"a"}
        assert said(caplog) == ["WARNING"]
        server.start()
        assert (await store.get(["a", "b"])).keys() == {"a"}
        layered.clock.time += 31
        assert await store.get(["b"]) == {}
        assert said(caplog) == ["WARNING", "INFO"]
        other = layered(server.address)
        assert await other.get(["a"]) == {"a": summary("a")}
        assert await other.find_records(["d"]) == [record("d")]


async def test_a_server_that_dies_in_mid_session_is_used_again_when_it_is_back(
    server: RedisServer, layered: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed twice: one warning each time, and what was put while it was away arrives."""
    caplog.set_level(logging.INFO, LOG)
    store = layered(server.address)
    await store.put(summary("a"))
    for name in ("b", "c"):
        server.kill()
        await store.put(summary(name))
        for _ in range(3):
            assert (await store.get(["a", name, "x"])).keys() == {"a", name}
        server.start()
        layered.clock.time += 31
        await store.put(summary(f"after {name}"))
        assert (await layered(server.address).get([name, f"after {name}"])).keys() == {name, f"after {name}"}
    assert said(caplog) == ["WARNING", "INFO"] * 2


async def test_a_server_that_was_restarted_between_two_calls_is_no_trouble(
    server: RedisServer, layered: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection that was dropped is made anew at once."""
    store = layered(server.address)
    await store.put(summary("a"))
    server.kill()
    server.start()
    await store.put(summary("b"))
    assert (await layered(server.address).get(["b"])).keys() == {"b"}
    assert said(caplog) == []


async def test_a_server_that_hangs_costs_one_timeout(
    server: RedisServer, layered: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty requests at once, each with several calls; then it goes on, and everything is written."""
    caplog.set_level(logging.INFO, LOG)
    store = layered(server.address, HANG)
    await store.put(summary("before"))
    names = keys(20)
    server.freeze()

    async def request(name: str) -> None:
        assert await store.get([name]) == {}
        await store.put(summary(name))
        assert (await store.get([name, "before"])).keys() == {name, "before"}
        assert await store.find_records([name]) == []

    await asyncio.gather(*map(request, names))
    while not said(caplog):  # noqa: ASYNC110 - nobody waits for the verdict any more, and the log has no event
        await asyncio.sleep(0.01)
    assert said(caplog) == ["WARNING"]
    assert "no answer within 0.5 s" in caplog.text
    layered.clock.time += 31
    assert await store.get(["x"]) == {}  # what is not written tries again, in vain
    assert said(caplog) == ["WARNING"]
    server.thaw()
    layered.clock.time += 31
    assert await store.get(["x"]) == {}
    await store.close()  # waits for what is being written
    assert (await layered(server.address).get(names)).keys() == set(names)
    assert said(caplog) == ["WARNING", "INFO"]


async def test_a_hanging_server_does_not_hold_up_the_end(server: RedisServer, layered: Open) -> None:
    """Closing gives up in time, and leaves no task."""
    before = asyncio.all_tasks()
    store = layered(server.address, HANG)
    await store.get(["a"])
    server.freeze()
    await store.put(summary("a"))
    await store.close()
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("trouble", ["wrong password", "unknown host", "unknown option"])
async def test_an_address_that_leads_nowhere_is_told_without_its_password(
    trouble: str, tmp_path: Path, layered: Open, caplog: pytest.LogCaptureFixture, no_hang: None
) -> None:
    """Memory, and one warning; in no line of the log, of any library, stands the password."""
    caplog.set_level(logging.DEBUG)
    with redis_server(tmp_path, password="another") as server:
        address = {
            "wrong password": f"redis://user:{PASSWORD}@127.0.0.1:{server.port}/0",
            "unknown host": f"redis://user:{PASSWORD}@no-such-host.invalid:{server.port}/0",
            "unknown option": f"redis://127.0.0.1:{server.port}/0?pasword={PASSWORD}",
        }[trouble]
        store = layered(address)
        for name in "abc":
            await store.put(summary(name))
        assert (await store.get(["a", "x"])).keys() == {"a"}
    assert said(caplog) == ["WARNING"]
    assert f":{server.port}/0" in caplog.text
    assert PASSWORD not in caplog.text
    assert all(PASSWORD not in repr(vars(line)) for line in caplog.records)


@pytest.mark.parametrize("call", ["get", "put", "find_records", "put_record"])
async def test_alone_it_says_that_it_is_away(call: str) -> None:
    """The error names the address without its secrets."""
    address = f"redis://user:{PASSWORD}@127.0.0.1:{free_port()}/0"
    store = SharedStore(address)
    calls: dict[str, Callable[[], Any]] = {
        "get": lambda: store.get(["a"]),
        "put": lambda: store.put(summary("a")),
        "find_records": lambda: store.find_records(["d"]),
        "put_record": lambda: store.put_record(record("d")),
    }
    with pytest.raises(StoreUnavailable) as raised:
        await calls[call]()
    assert public_address(address) in str(raised.value)
    assert PASSWORD not in str(raised.value)
    await store.close()


async def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""

    def missing(name: str) -> None:
        raise ImportError("No module named 'key_value'")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(StoreUnavailable, match=r"pip install 'amplifier-module-context-summarize\[shared\]'"):
        await SharedStore("postgresql://h/d").get(["a"])


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
async def test_a_database_that_is_down_is_told_in_the_same_way(scheme: str) -> None:
    """Without the password, and closing is no error."""
    store = SharedStore(f"{scheme}://user:{PASSWORD}@127.0.0.1:{free_port()}/x")
    with pytest.raises(StoreUnavailable) as raised:
        await store.put(summary("a"))
    assert PASSWORD not in str(raised.value)
    await store.close()


# --- addresses ------------------------------------------------------------------------------------------------------


def test_an_address_is_told_from_a_path():
    """By its `://`; whether its beginning is known is another question."""
    assert [is_shared_address(f"{scheme}://h") for scheme in SCHEMES] == [True] * len(SCHEMES)
    assert is_shared_address("nonsense://h")
    assert [is_shared_address(text) for text in ("memory", "/a/b.sqlite3", "C:\\a\\b", "a:b", "")] == [False] * 5


@pytest.mark.parametrize("scheme", ["reddis", "mongodb", "mongodb+srv", "memcached"])
def test_an_unknown_scheme_is_refused_with_the_known_ones(scheme: str) -> None:
    """And without the password."""
    known = "redis://, rediss://, valkey://, valkeys://, postgresql://, postgres://;"
    with pytest.raises(ConfigError, match=rf"'{re.escape(scheme)}://h:1/0'.* begins with one of {known}") as raised:
        SharedStore(f"{scheme}://user:{PASSWORD}@h:1/0")
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("mark", "/?#")
def test_a_password_that_is_not_encoded_is_refused(mark: str) -> None:
    """A client would take a part of it for a port, and say so in its error."""
    with pytest.raises(ConfigError, match="percent-encoded") as raised:
        SharedStore(f"redis://user:one{mark}two@h:1/0")
    assert "one" not in str(raised.value)
    assert "two" not in str(raised.value)


def test_an_address_that_is_none_is_refused():
    """When it is made, not at the first call."""
    with pytest.raises(ConfigError, match="cannot be read"):
        SharedStore("redis://[::1")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://user:word@h:1/0", "redis://h:1/0"),
        ("redis://:w@rd@h:1/0", "redis://h:1/0"),
        ("redis://h:1/0?password=word&ssl=1", "redis://h:1/0"),
        ("redis://h:1/0?password=w@rd", "redis://…"),
        ("redis://user:w?rd@h:1/0", "redis://…"),
        ("postgresql://u:w@a:1,b:2/d", "postgresql://a:1,b:2/d"),
    ],
)
def test_an_address_is_shown_without_secrets(address: str, public: str) -> None:
    """Where it is not clear what belongs to a password, nothing is shown."""
    assert public_address(address) == public


# --- a session ------------------------------------------------------------------------------------------------------


async def test_a_session_serves_every_request_whatever_the_server_does(
    server: RedisServer, layered: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """The server hangs, dies and returns in mid-session; then a new session adopts the compaction without a call."""
    caplog.set_level(logging.INFO, LOG)
    settings = {"keep_recent": 4, "segment_tokens": 64, "summary_tokens": 32, "prefetch_threshold": None}
    provider = ScriptedProvider(then="Goal: look up orders.")
    context = SummarizingContextManager(config=settings, store=layered(server.address, HANG))
    rows = tool_session(40)
    trouble = {8: server.freeze, 16: server.kill, 24: server.start}
    for at in range(40):
        if at in trouble:
            trouble[at]()
            layered.clock.time += 31
        for row in rows[4 * at : 4 * at + 4]:
            await context.add_message(row)
        view = await context.get_messages_for_request(token_budget=1_500, provider=provider)
        assert view[-1]["content"] == rows[4 * at + 3]["content"]
    assert await context.get_messages() == rows
    assert said(caplog) == ["WARNING", "INFO"]
    await context.close()

    asked = provider.calls
    again = SummarizingContextManager(config=settings, store=layered(server.address))
    await again.set_messages(rows)
    assert await again.get_messages_for_request(token_budget=1_500, provider=provider) == view
    assert provider.calls == asked > 0
    await again.close()
