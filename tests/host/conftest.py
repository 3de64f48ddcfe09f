"""Sessions for the tests of this folder, each ended after its test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.session import SMALL, Host


@pytest.fixture
async def hosts(monkeypatch: pytest.MonkeyPatch, no_hang: None) -> AsyncIterator[Any]:
    """Starts a session with small settings, and with these; a test that hangs is ended after a minute."""
    async with AsyncExitStack() as ends:

        async def start(settings: dict[str, Any] | None = None, **options: Any) -> Host:
            host = await Host(monkeypatch, {**SMALL, "cache": "memory", **(settings or {})}, **options).start()
            ends.push_async_callback(host.end)
            return host

        yield start
