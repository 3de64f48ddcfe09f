"""The bounds of the store in memory. What every store keeps to: tests/contracts."""

from __future__ import annotations

from dataclasses import replace

from context_summarize.stores.memory import MemoryStore
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
        """The oldest record is evicted."""
        store = MemoryStore(max_bytes=8 * 2_500)
        for hash_ in ("d1", "d2", "d3"):
            await store.put_record(record(hash_))
        assert await store.find_records(["d1", "d2", "d3"]) == [record("d2"), record("d3")]
