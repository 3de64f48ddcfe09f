"""Memory and its bound; memory over a persistent store: what is kept where, and what one that fails or hangs costs."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.core.nodes import Summary
from context_summarize.stores import LayeredStore, MemoryStore
from tests.contracts.factories import record, summary
from tests.support.recorder import Clock

HANG = 0.02  # timeout in seconds where the store never answers


class Shaky:
    """A store that works, fails or hangs when it is told to, refuses some keys, and records its calls."""

    def __init__(self) -> None:
        self.kept = MemoryStore()
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any) -> Any:
            self.calls.append((name, *given))
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            if self.refuses & {getattr(one, "key", None) for one in given}:
                raise OSError("too large for me")
            return await getattr(self.kept, name)(*given)

        return call


REFUSED = OSError("refused for user:hunter2")


def make(timeout: float = 30, clock: Any = None) -> tuple[LayeredStore, Any, Any]:
    shaky: Any = Shaky()
    clock = clock or Clock()
    return LayeredStore(MemoryStore(), shaky, name="the shaky store", timeout=timeout, clock=clock), shaky, clock


async def test_of_memory_the_least_recently_used_summary_goes_first() -> None:
    """The bound is in bytes, and reading counts as use."""
    store = MemoryStore(max_bytes=350_000)
    for key in "abc":
        await store.put(summary(key, "x" * 50_000))
    await store.get(["a"])
    await store.put(summary("d", "x" * 50_000))
    assert (await store.get(list("abcd"))).keys() == {"a", "c", "d"}
    await store.put(summary("e", "x" * 150_000))
    assert (await store.get(list("abcde"))).keys() == {"e"}


async def test_what_is_put_is_in_both_and_read_from_memory() -> None:
    """The persistent store hears of what is missing only, and only once."""
    store, shaky, _ = make()
    await store.put(summary("a"))
    await store.put_record("d", record())
    assert await shaky.kept.get(["a"]) == {"a": summary("a")}
    assert await shaky.kept.get_records(["d"]) == {"d": record()}
    await shaky.kept.put(summary("b"))
    shaky.calls.clear()
    for _ in range(2):
        assert await store.get(["a", "b"]) == {"a": summary("a"), "b": summary("b")}
    assert shaky.calls == [("get", ["b"])]


async def test_a_store_that_fails_is_left_alone_for_half_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Memory serves, with one warning that names the store and nothing that may be a secret."""
    store, shaky, clock = make()
    await store.put(summary("a"))
    shaky.error = REFUSED
    shaky.calls.clear()
    for _ in range(2):
        assert await store.get(["a", "b"]) == {"a": summary("a")}
        assert await store.get_records(["d"]) == {}
        clock.time += 29.9 / 2
    assert shaky.calls == [("get", ["b"])]
    clock.time += 0.2
    assert await store.get(["b"]) == {}
    assert shaky.calls == [("get", ["b"])] * 2
    [warning] = caplog.messages
    assert warning.startswith("the shaky store: OSError; meanwhile summaries are kept in memory")
    assert "hunter2" not in warning


async def test_a_store_that_hangs_costs_one_timeout(caplog: pytest.LogCaptureFixture, no_hang: None) -> None:
    """Twenty requests at once wait together, and the calls that follow do not wait at all."""
    store, shaky, _ = make(timeout=HANG)
    shaky.gate.clear()

    async def request(key: str) -> None:
        assert await store.get([f"no {key}"]) == {}
        await store.put(summary(key))
        assert await store.get([key]) == {key: summary(key)}
        assert await store.get_records(["d"]) == {}

    await asyncio.gather(*(request(str(at)) for at in range(20)))
    assert len(shaky.calls) == 20
    assert [line.levelname for line in caplog.records] == ["WARNING"]


async def test_one_entry_that_is_refused_holds_up_no_other() -> None:
    store, shaky, clock = make()
    shaky.refuses = {"large"}
    for key in ("large", "a", "b"):
        await store.put(summary(key))
    for _ in range(3):
        clock.time += 31
        await store.get(["x"])
        await store.put(summary("c"))
    assert (await shaky.kept.get(["a", "b", "c"])).keys() == {"a", "b", "c"}


async def test_an_entry_is_kept_however_late_the_clock_is_looked_at_again() -> None:
    """A machine that sleeps between two looks has passed the time of the next try."""
    store, shaky, _ = make(clock=itertools.count(0.0, 40).__next__)
    shaky.refuses = {"a"}
    await store.put(summary("a"))
    shaky.refuses = set()
    await store.close()
    assert (await shaky.kept.get(["a"])).keys() == {"a"}


async def test_a_put_that_is_cancelled_is_written_all_the_same() -> None:
    store, shaky, _ = make()
    shaky.gate.clear()
    put = asyncio.create_task(store.put(summary("a")))
    for _ in range(3):
        await asyncio.sleep(0)
    put.cancel()
    await asyncio.wait({put})
    shaky.gate.set()
    await store.put(summary("b"))
    assert (await shaky.kept.get(["a", "b"])).keys() == {"a", "b"}


STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "get"]), st.sampled_from("abc"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["fails", "works", "close"]), st.just(""), st.just(0)),
    st.tuples(st.just("later"), st.just(""), st.sampled_from([1, 31])),
)


@given(st.lists(STEPS, max_size=40))
async def test_whatever_happens_what_was_put_is_got_and_arrives_in_the_end(steps: list[tuple[str, str, Any]]) -> None:
    store, shaky, clock = make()
    model: dict[str, Summary] = {}
    for step, key, number in steps:
        if step == "put":
            model[key] = summary(key, f"text {number}")
            await store.put(model[key])
        elif step == "get":
            assert await store.get([key]) == ({key: model[key]} if key in model else {})
        elif step == "later":
            clock.time += number
        elif step == "close":
            await store.close()
        else:
            shaky.error = REFUSED if step == "fails" else None
    shaky.error = None
    await store.close()
    assert await shaky.kept.get(list("abc")) == model
