"""The bounds of the store in memory. What every store keeps to: tests/contracts."""

from __future__ import annotations

from context_summarize.stores import MemoryStore
from tests.contracts.factories import record, summary


async def test_the_least_recently_used_summary_goes_first() -> None:
    """The bound is in bytes, and reading counts as use."""
    store = MemoryStore(max_bytes=350_000)
    for key in "abc":
        await store.put(summary(key, "x" * 50_000))
    await store.get(["a"])
    await store.put(summary("d", "x" * 50_000))
    assert (await store.get(list("abcd"))).keys() == {"a", "c", "d"}
    await store.put(summary("e", "x" * 150_000))
    assert (await store.get(list("abcde"))).keys() == {"e"}


async def test_what_is_longer_than_the_whole_store_is_not_kept() -> None:
    """It is no error, and pushes nothing out."""
    store = MemoryStore(max_bytes=80_000)
    await store.put(summary("a"))
    await store.put_record("a", record())
    await store.put(summary("b", "x" * 100_000))
    assert (await store.get(["a", "b"])).keys() == {"a"}
    assert await store.get_records(["a"]) == {"a": record()}
