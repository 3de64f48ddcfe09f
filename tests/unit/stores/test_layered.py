"""Memory over a persistent store: where an entry is read from, and where it is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.core.nodes import Summary
from tests.unit.stores.shaky import HANGS, make, record, settle, summary, time, timeless, warnings_of


class TestBothLayers:
    @timeless
    async def test_what_is_put_is_in_both(self) -> None:
        """Summaries and records."""
        store, shaky, _ = make()
        await store.put(summary("a"))
        await store.put_record(record("d"))
        assert await shaky.kept.get(["a"]) == {"a": summary("a")}
        assert await shaky.kept.find_records(["d"]) == [record("d")]

    @timeless
    async def test_what_is_in_memory_is_not_asked_for(self) -> None:
        """The persistent store hears of what is missing only."""
        store, shaky, _ = make()
        await store.put(summary("a"))
        await store.put_record(record("d"))
        shaky.calls.clear()
        assert await store.get(["a"]) == {"a": summary("a")}
        assert await store.find_records(["d", "e"]) == [record("d")]
        assert not await store.is_empty()
        assert await store.get([]) == {}
        assert await store.find_records([]) == []
        assert shaky.calls == []

    @timeless
    async def test_what_the_persistent_store_has_is_read_once(self) -> None:
        """Then memory has it."""
        store, shaky, _ = make()
        await shaky.kept.put(summary("a"))
        await shaky.kept.put_record(record("d"))
        for _ in range(2):
            assert await store.get(["a"]) == {"a": summary("a")}
            assert await store.find_records(["d"]) == [record("d")]
        assert shaky.calls == ["get", "find d"]

    @timeless
    async def test_memory_and_the_persistent_store_answer_together(self) -> None:
        """A part from each."""
        store, shaky, _ = make()
        await store.put(summary("a"))
        await shaky.kept.put(summary("b"))
        assert await store.get(["a", "b", "c"]) == {"a": summary("a"), "b": summary("b")}

    @timeless
    async def test_only_longer_histories_than_memory_knows_are_asked_for(self) -> None:
        """The first record is the one that is adopted; memory's wins over an older one of the same hash."""
        store, shaky, _ = make()
        await store.put_record(record("d2", 7))
        for hash_ in ("d1", "d2", "d3"):
            await shaky.kept.put_record(record(hash_))
        shaky.calls.clear()
        assert await store.find_records(["d0", "d1", "d2", "d3", "d1"]) == [record("d1"), record("d2", 7)]
        assert shaky.calls == ["find d0 d1"]

    @timeless
    async def test_it_is_empty_when_both_are(self) -> None:
        """A record on either side is something to look for."""
        store, shaky, _ = make()
        assert await store.is_empty()
        await shaky.kept.put_record(record("d"))
        assert not await store.is_empty()

    @timeless
    async def test_a_store_that_may_be_back_is_not_called_empty(self, caplog: pytest.LogCaptureFixture) -> None:
        """The look for a record that follows is the trial: a store on a server need not ask it to say "not empty"."""
        store, shaky, clock = make()
        await shaky.kept.put_record(record("d"))
        shaky.error = OSError("nobody there")
        for _ in range(3):
            assert await store.find_records(["d"]) == []
            assert await store.is_empty()
            shaky.calls.clear()
            clock.time += 31
            assert not await store.is_empty()
            assert shaky.calls == []
        shaky.error = None
        assert await store.find_records(["d"]) == [record("d")]
        assert len(warnings_of(caplog)) == 1

    @timeless
    async def test_a_fallback_summary_reaches_neither(self) -> None:
        """The error is the caller's, not the store's: nothing is paused."""
        store, shaky, _ = make()
        with pytest.raises(ValueError, match="a fallback summary is never stored"):
            await store.put(replace(summary("a"), fallback=True))
        assert await store.get(["a"]) == {}
        assert shaky.calls == ["get"]


class TestClose:
    @timeless
    async def test_close_waits_for_what_is_being_written(self) -> None:
        """Then it closes, and leaves no task."""
        store, shaky, _ = make(timeout=1.0)
        before = asyncio.all_tasks()
        shaky.seconds = 0.2
        put = asyncio.create_task(store.put(summary("a")))
        await settle()
        put.cancel()
        await store.close()
        assert await shaky.kept.get(["a"]) == {"a": summary("a")}
        assert shaky.closed == 1
        assert asyncio.all_tasks() - before <= {put}

    @timeless
    async def test_close_tries_once_more_to_write_what_could_not_be(self) -> None:
        """It is the last chance, so the pause does not count."""
        store, shaky, _ = make()
        shaky.error = OSError("nobody there")
        await store.put(summary("a"))
        shaky.error = None
        await store.close()
        assert await shaky.kept.get(["a"]) == {"a": summary("a")}

    @timeless
    async def test_close_is_bounded(self, caplog: pytest.LogCaptureFixture) -> None:
        """By the timeout, with a store that hangs in everything; and no task is left."""
        store, shaky, _ = make(timeout=1.0)
        before = asyncio.all_tasks()
        shaky.seconds = HANGS
        get, put = asyncio.create_task(store.get(["a"])), asyncio.create_task(store.put(summary("b")))
        await settle()
        await store.close()
        await settle()
        assert time() < 1.0
        assert get.done()
        assert put.done()
        assert asyncio.all_tasks() == before

    @timeless
    async def test_a_store_that_cannot_be_closed_is_let_go_of(self) -> None:
        """Nobody can do anything about it."""
        store, shaky, _ = make()
        shaky.error = OSError("nobody there")
        await store.close()
        await store.close()
        assert shaky.closed == 2

    @timeless
    async def test_a_closed_store_may_be_used_again(self) -> None:
        """Memory is as before."""
        store, shaky, _ = make()
        await store.put(summary("a"))
        await store.close()
        await store.put(summary("b"))
        assert (await store.get(["a", "b"])).keys() == {"a", "b"}
        assert (await shaky.kept.get(["a", "b"])).keys() == {"a", "b"}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 3)),
        st.tuples(st.just("get"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("fail"), st.just(""), st.just(0)),
        st.tuples(st.just("hang"), st.just(""), st.just(0)),
        st.tuples(st.just("slow"), st.just(""), st.just(0)),
        st.tuples(st.just("mend"), st.just(""), st.just(0)),
        st.tuples(st.just("later"), st.just(""), st.sampled_from([1, 31])),
        st.tuples(st.just("close"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_whatever_happens_what_was_put_is_got_and_arrives_in_the_end(steps: list[tuple[str, str, int]]) -> None:
    """An outage loses no entry, keeps the order of writes and delays a call by a second at most; all is written."""

    @timeless
    async def run() -> None:
        store, shaky, clock = make(timeout=1.0)
        model: dict[str, Summary] = {}
        for step, key, number in steps:
            start = time()
            if step == "put":
                model[key] = summary(key, f"text {number}")
                await store.put(model[key])
            elif step == "get":
                assert await store.get([key]) == ({key: model[key]} if key in model else {})
            elif step == "fail":
                shaky.error = OSError("nobody there")
            elif step in ("hang", "slow"):
                shaky.seconds = HANGS if step == "hang" else 0.7
            elif step == "mend":
                shaky.error, shaky.seconds = None, 0.0
            elif step == "later":
                clock.time += number
            else:
                await store.close()
            assert time() - start <= 1.0 + 1e-9
        shaky.error, shaky.seconds = None, 0.0
        await asyncio.sleep(2)
        for _ in range(2):
            clock.time += 31
            await store.get(["x"])
        await store.close()
        assert await shaky.kept.get(list("abc")) == model

    run()
