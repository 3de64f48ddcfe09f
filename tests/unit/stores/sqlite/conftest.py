"""A store in a file, with its clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from context_summarize.stores.sqlite import SqliteStore
from tests.unit.stores.sqlite.support import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "store.sqlite3"


@pytest.fixture
async def store(path: Path, clock: Clock, no_hang: None) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path, now=clock, busy_seconds=0.05)
    yield made
    await made.close()
