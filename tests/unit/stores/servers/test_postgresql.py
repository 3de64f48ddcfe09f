"""The store on PostgreSQL, against a real server: the contract, a restart, several machines, and the password."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from context_summarize.errors import StoreUnavailable
from context_summarize.stores.protocol import SummaryStore
from context_summarize.stores.shared import TTL_SECONDS, SharedStore
from tests.contracts import test_stores as contract
from tests.contracts.factories import record, summary
from tests.contracts.servers import RecordsOnAServer, SummariesOnAServer
from tests.support.postgresql_server import PASSWORD, PostgresqlServer, postgresql_server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    importlib.import_module("key_value.aio.stores.postgresql")
    with postgresql_server() as running:
        yield running


@pytest.fixture
def address(server: PostgresqlServer, no_hang: None) -> str:
    return server.new_database()


@pytest.fixture
async def store(address: str) -> AsyncIterator[SummaryStore]:
    """What the contract is run with."""
    made = SharedStore(address)
    yield made
    await made.close()


class TestSummariesInPostgresql(SummariesOnAServer):
    pass


class TestRecordsInPostgresql(RecordsOnAServer):
    pass


class TestUseOfPostgresql(contract.TestUse):
    pass


async def test_entries_outlive_the_object_and_are_seen_by_others(address: str) -> None:
    """A new process, or another machine, finds them; many that open the store at the same moment make one table."""
    stores = [SharedStore(address) for _ in range(12)]
    assert await asyncio.gather(*(store.get(["a"]) for store in stores)) == [{}] * 12
    await stores[0].put(summary("a"))
    await stores[1].put_record(record("d"))
    for store in stores:
        assert await store.get(["a"]) == {"a": summary("a")}
        assert await store.find_records(["d"]) == [record("d")]
        await store.close()


async def test_a_server_that_was_restarted_between_two_calls_is_used_again(
    server: PostgresqlServer, address: str
) -> None:
    """While it is away, the error says so without the password; afterwards every entry is there."""
    store = SharedStore(address)
    await asyncio.gather(*(store.put(summary(key)) for key in "abcdefgh"))  # several connections
    await asyncio.to_thread(server.stop)  # as in a session, the loop runs meanwhile
    with pytest.raises(StoreUnavailable) as raised:
        await store.get(["a"])
    assert PASSWORD not in str(raised.value)
    await asyncio.to_thread(server.start)
    await store.put(summary("i"))
    assert (await store.get(list("abcdefghi"))).keys() == set("abcdefghi")
    await store.close()


async def test_entries_go_after_ninety_days(address: str, store: SharedStore) -> None:
    """Each entry is stored with the time at which it ends."""
    import asyncpg  # type: ignore[import-untyped]

    await store.put(summary("a"))
    await store.put_record(record("d"))
    client = await asyncpg.connect(address)
    lives = await client.fetch("SELECT extract(epoch FROM expires_at - now()) AS life FROM context_summarize")
    await client.close()
    assert len(lives) == 2
    assert all(0 < TTL_SECONDS - float(row["life"]) < 3_600 for row in lives)


async def test_a_wrong_password_is_told_without_it(
    server: PostgresqlServer, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names the address without its secrets."""
    caplog.set_level(logging.DEBUG)
    store = SharedStore(address.replace("tester:", "tester:wrong-and-secret-"))
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{server.port}/test_") as raised:
        await store.get(["a"])
    assert "wrong-and-secret" not in str(raised.value) + caplog.text
    await store.close()
