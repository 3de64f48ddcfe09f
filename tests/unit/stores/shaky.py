"""A persistent store for tests that fails, hangs and recovers when it is told to, and a layered store over it."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from benchmarks.field.virtual import VirtualLoop, run_virtually
from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from tests.support.recorder import Clock

LOG = "context_summarize.stores.guard"


def timeless(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in a loop of its own whose time is `time()` and passes without anybody waiting."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtually(test(*args, **kwargs))

    assert not inspect.iscoroutinefunction(run)
    return run


def time() -> float:
    return asyncio.get_running_loop().time()


def stop_process(seconds: float) -> None:
    """As if the process had been stopped for so long: the time of the loop goes on, and nothing else."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.pass_time(seconds)


class Shaky:
    """A store that works, fails, hangs, dawdles or stops at will, and counts its calls."""

    def __init__(self) -> None:
        self.kept = MemoryStore()
        self.calls: list[str] = []
        self.error: BaseException | None = None
        self.seconds = 0.0
        """Seconds that a call takes; infinite: it hangs."""
        self.stubborn = False
        """Hangs and ignores cancellation."""
        self.refuses: set[str] = set()
        self.closed = 0
        self.release = asyncio.Event()

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.stubborn:
            while not self.release.is_set():
                try:
                    await self.release.wait()
                except asyncio.CancelledError:
                    continue
        if self.seconds == float("inf"):
            await asyncio.Event().wait()
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        await self._called("get")
        return await self.kept.get(keys)

    async def put(self, summary: Summary) -> None:
        await self._called("put")
        if summary.key in self.refuses:
            raise OSError("too large for me")
        await self.kept.put(summary)

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        await self._called(f"find {' '.join(hashes)}")
        return await self.kept.find_records(hashes)

    async def put_record(self, record: CompactionRecord) -> None:
        await self._called("put_record")
        await self.kept.put_record(record)

    async def is_empty(self) -> bool:
        await self._called("is_empty")
        return await self.kept.is_empty()

    async def close(self) -> None:
        self.closed += 1
        await self._called("close")


def make(**options: Any) -> tuple[LayeredStore, Shaky, Clock]:
    shaky, clock = Shaky(), Clock()
    return LayeredStore(MemoryStore(), shaky, name="the shaky store", clock=clock, **options), shaky, clock


def summary(key: str, text: str = "Goal: none") -> Summary:
    return Summary(key=key, level=0, text=text, ledger=(), tokens=5, source_tokens=50)


def record(hash_: str, frontier: int = 3) -> CompactionRecord:
    return CompactionRecord(hash_, frontier, 9, 512, 100, ())


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(line.levelname, line.getMessage()) for line in caplog.records if line.name == LOG]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for level, text in said(caplog) if level == "WARNING"]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


HANGS = float("inf")
