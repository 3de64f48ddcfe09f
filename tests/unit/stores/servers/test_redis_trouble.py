"""A Redis server that is down, dies, hangs or refuses: memory serves, and no password is told."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.errors import StoreUnavailable
from context_summarize.stores.address import public_address
from context_summarize.stores.shared import SharedStore
from context_summarize.testing import ScriptedProvider, tool_session
from tests.contracts.factories import keys, record, summary
from tests.support.redis_server import RedisServer, free_port, redis_server
from tests.unit.stores.servers.support import HANG, LOG, PASSWORD, Open, said


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
    """A dropped connection is opened again at once."""
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
    while said(caplog) == ["WARNING"]:  # a caller waits for a trial for a moment only; the trial goes on
        layered.clock.time += 31
        assert await store.get(["x"]) == {}
        await asyncio.sleep(0.01)
    await store.put(summary("after"))  # waits for what is being written, and so does the end
    await store.close()
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
    """Memory serves, with one warning; no line of the log, of any library, holds the password."""
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
    with pytest.raises(StoreUnavailable, match=r'python -m pip install "py-key-value-aio.*"asyncpg'):
        await SharedStore("postgresql://h/d").get(["a"])


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
async def test_a_database_that_is_down_is_told_in_the_same_way(scheme: str) -> None:
    """Without the password, and closing is no error."""
    store = SharedStore(f"{scheme}://user:{PASSWORD}@127.0.0.1:{free_port()}/x")
    with pytest.raises(StoreUnavailable) as raised:
        await store.put(summary("a"))
    assert PASSWORD not in str(raised.value)
    await store.close()


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


DAMAGED = {
    "no text": b"\xff\xfe{",
    "no JSON": b"{",
    "no object": b"[]",
    "no value": b"{}",
    "no object as value": b'{"value": [1]}',
    "no text as entry": b'{"value": {"entry": 5}}',
    "a number as time": b'{"created_at": 5, "value": {"entry": "x"}}',
    "no such day": b'{"expires_at": "2026-13-77", "value": {"entry": "x"}}',
    "a time without zone": b'{"expires_at": "2026-01-01T00:00:00", "value": {"entry": "x"}}',
    "too deep": b"[" * 100_000,
    "too many digits": b'{"value": ' + b"9" * 10_000 + b"}",
}


async def test_a_damaged_entry_is_as_good_as_none_and_the_store_stays_in_use(
    server: RedisServer, layered: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever stands in it, the others are read with the same call, and it is written anew."""
    from redis.asyncio import Redis

    writer = layered(server.address)
    names = [*DAMAGED, "of another key", "of another type", "whole"]
    for name in names:
        await writer.put(summary(name))
        await writer.put_record(record(name))
    async with Redis.from_url(server.address) as client:
        for collection in ("context_summarize_summaries", "context_summarize_records"):
            for name, value in DAMAGED.items():
                assert await client.set(f"{collection}::{name}", value, xx=True)
            whole = await client.get(f"{collection}::whole") or b""
            assert await client.set(f"{collection}::of another key", whole, xx=True)
            await client.delete(f"{collection}::of another type")
            await client.lpush(f"{collection}::of another type", "x")
    store = layered(server.address)
    assert await store.get(names) == {"whole": summary("whole")}
    assert await store.find_records(names) == [record("whole")]
    for name in names:
        await store.put(summary(name))
    assert (await layered(server.address).get(names)).keys() == set(names)
    assert said(caplog) == []
