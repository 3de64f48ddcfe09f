"""The bounds of the store in memory. What every store keeps to: tests/contracts."""

from __future__ import annotations

from context_summarize.stores import MemoryStore
from tests.contracts.factories import summary


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
