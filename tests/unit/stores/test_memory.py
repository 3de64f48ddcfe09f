"""The bounds of the store in memory, and single flight. What every store keeps to: tests/contracts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.single_flight import SingleFlight
from tests.contracts.factories import record, summary


class TestMemoryStore:
    async def test_the_least_recently_used_summary_goes_first(self) -> None:
        """The bound is in bytes, and reading counts as use."""
        store = MemoryStore(max_bytes=3 * 3_100)
        for key in "abc":
            await store.put(summary(key, "x" * 1_000))
        await store.get(["a"])
        await store.put(summary("d", "x" * 1_000))
        assert (await store.get(list("abcd"))).keys() == {"a", "c", "d"}

    async def test_one_long_summary_may_push_out_several(self) -> None:
        """Not entries are counted, but bytes."""
        store = MemoryStore(max_bytes=10_000)
        for key in "abcd":
            await store.put(summary(key, "x" * 500))
        await store.put(summary("e", "x" * 4_000))
        assert (await store.get(list("abcde"))).keys() == {"e"}

    async def test_what_is_longer_than_the_whole_store_is_not_kept(self) -> None:
        """It is no error, and pushes nothing out."""
        store = MemoryStore(max_bytes=8_000)
        await store.put(summary("a"))
        await store.put(summary("b", "x" * 100_000))
        assert (await store.get(["a", "b"])).keys() == {"a"}
        await store.put_record(replace(record("d"), shortened=((0, 0, 1, "ab"),) * 1_000))
        assert await store.find_records(["d"]) == []

    async def test_records_are_bounded_too(self) -> None:
        """The oldest boundary goes."""
        store = MemoryStore(max_bytes=8 * 2_500)
        for digest in ("d1", "d2", "d3"):
            await store.put_record(record(digest))
        assert await store.find_records(["d1", "d2", "d3"]) == [record("d2"), record("d3")]


class Work:
    """Work that is counted, and that ends when the test says so."""

    def __init__(self, outcome: str | Exception = "done") -> None:
        self.outcome = outcome
        self.started = 0
        self.ended = 0
        self.go = asyncio.Event()

    async def __call__(self) -> str:
        self.started += 1
        try:
            await self.go.wait()
        finally:
            self.ended += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def settle() -> None:
    """Let everything that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


class TestSingleFlight:
    async def test_all_who_ask_meanwhile_share_one_piece_of_work(self) -> None:
        """Once per key."""
        flight, work = SingleFlight(), Work()
        askers = [asyncio.create_task(flight.run("k", work)) for _ in range(5)]
        await settle()
        assert (work.started, len(flight)) == (1, 1)
        work.go.set()
        assert await asyncio.gather(*askers) == ["done"] * 5
        assert (work.started, len(flight)) == (1, 0)

    async def test_keys_do_not_wait_for_each_other(self) -> None:
        """Different keys are different work."""
        flight, slow, quick = SingleFlight(), Work(), Work("quick")
        asker = asyncio.create_task(flight.run("slow", slow))
        quick.go.set()
        assert await flight.run("quick", quick) == "quick"
        assert len(flight) == 1
        slow.go.set()
        assert await asker == "done"

    async def test_work_is_done_anew_once_it_has_ended(self) -> None:
        """Nothing is remembered here; that is the store's business."""
        flight, work = SingleFlight(), Work()
        work.go.set()
        assert [await flight.run("k", work), await flight.run("k", work)] == ["done", "done"]
        assert work.started == 2

    async def test_work_survives_the_one_who_asked_first(self) -> None:
        """Its result still reaches the store, and the others."""
        flight, work = SingleFlight(), Work()
        first, second = (asyncio.create_task(flight.run("k", work)) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        assert first.cancelled()
        assert (work.ended, len(flight)) == (0, 1)
        work.go.set()
        assert await second == "done"

    async def test_work_survives_all_who_asked(self) -> None:
        """A later asker joins it."""
        flight, work = SingleFlight(), Work()
        asker = asyncio.create_task(flight.run("k", work))
        await settle()
        asker.cancel()
        await settle()
        later = asyncio.create_task(flight.run("k", work))
        await settle()
        work.go.set()
        assert await later == "done"
        assert work.started == 1

    async def test_an_error_reaches_all_who_ask(self) -> None:
        """And is forgotten: the next asker tries anew."""
        flight, work = SingleFlight(), Work(RuntimeError("broken"))
        askers = [asyncio.create_task(flight.run("k", work)) for _ in range(3)]
        await settle()
        work.go.set()
        results = await asyncio.gather(*askers, return_exceptions=True)
        assert [str(error) for error in results] == ["broken"] * 3
        assert len(flight) == 0
        with pytest.raises(RuntimeError):
            await flight.run("k", work)
        assert work.started == 2

    async def test_an_error_that_nobody_waits_for_is_silent(self) -> None:
        """No "exception was never retrieved" at the end of a session."""
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        flight, work = SingleFlight(), Work(RuntimeError("broken"))
        asker = asyncio.create_task(flight.run("k", work))
        await settle()
        asker.cancel()
        await settle()
        work.go.set()
        await settle()
        assert len(flight) == 0
        assert complaints == []

    async def test_closing_leaves_no_task(self) -> None:
        """What is under way is cancelled and has ended when close returns."""
        flight, work = SingleFlight(), Work()
        before = asyncio.all_tasks()
        askers = [asyncio.create_task(flight.run(key, work)) for key in "ab"]
        await settle()
        await flight.close()
        assert (work.ended, len(flight)) == (2, 0)
        await asyncio.gather(*askers, return_exceptions=True)
        assert asyncio.all_tasks() == before
        await flight.close()
