"""A Redis server, and stores on it that are closed at the end."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from context_summarize.stores.protocol import SummaryStore
from context_summarize.stores.shared import SharedStore
from tests.support.redis_server import RedisServer, redis_server
from tests.unit.stores.servers.support import Open


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


@pytest.fixture
async def layered() -> AsyncIterator[Open]:
    opened = Open()
    yield opened
    for store in opened.made:
        await store.close()
