"""Entries that wait to be written arrive when the persistent store works again."""

from __future__ import annotations

import asyncio

import pytest

from context_summarize.stores.layered import MAX_UNWRITTEN
from tests.unit.stores.shaky import HANGS, make, record, settle, summary, time, timeless, warnings_of


class TestWrites:
    @timeless
    async def test_what_is_put_while_it_is_away_is_written_when_it_is_back(self) -> None:
        """By the next put, everything."""
        store, shaky, clock = make()
        shaky.error = OSError("nobody there")
        await store.put(summary("a", "old"))
        await store.put(summary("a", "new"))
        await store.put_record(record("d"))
        assert await store.get(["a"]) == {"a": summary("a", "new")}
        shaky.error = None
        clock.time += 31
        await store.put(summary("b"))
        assert await shaky.kept.get(["a", "b"]) == {"a": summary("a", "new"), "b": summary("b")}
        assert await shaky.kept.find_records(["d"]) == [record("d")]
        assert shaky.calls.count("put") == 3  # the one that failed, a and b

    @timeless
    async def test_a_read_writes_what_is_unwritten_too(self) -> None:
        """What waits makes the trial, then the read is answered."""
        store, shaky, clock = make()
        shaky.error = OSError("nobody there")
        await store.put(summary("a"))
        await shaky.kept.put(summary("x"))
        shaky.error = None
        clock.time += 31
        assert await store.get(["x"]) == {"x": summary("x")}
        assert await shaky.kept.get(["a"]) == {"a": summary("a")}

    @timeless
    async def test_what_is_put_while_a_read_tries_is_written_after_it(self) -> None:
        """Nothing lies about until the next put."""
        store, shaky, clock = make(timeout=1.0)
        shaky.error = OSError("nobody there")
        await store.get(["x"])
        shaky.error, shaky.seconds = None, 0.5
        clock.time += 31
        trial = asyncio.create_task(store.get(["x"]))
        await settle()
        await store.put(summary("a"))
        assert shaky.calls[1:] == ["get"]
        await trial
        await asyncio.sleep(1)
        assert await shaky.kept.get(["a"]) == {"a": summary("a")}

    @timeless
    async def test_the_newest_of_what_is_unwritten_is_kept(self, caplog: pytest.LogCaptureFixture) -> None:
        """Bounded; memory has the rest, and one warning names how many that are."""
        store, shaky, clock = make()
        shaky.error = OSError("nobody there")
        keys = [f"k{at}" for at in range(MAX_UNWRITTEN + 100)]
        for key in keys:
            await store.put(summary(key))
        shaky.error = None
        clock.time += 31
        await store.get(["x"])
        assert (await shaky.kept.get(keys)).keys() == set(keys[100:])
        assert (await store.get(keys)).keys() == set(keys)
        [told] = [line for line in caplog.records if line.name == "context_summarize.stores.layered"]
        assert told.levelname == "WARNING"
        assert "the shaky store: 100 summaries and records" in told.getMessage()

    @timeless
    async def test_what_was_never_written_is_told_at_the_end(self, caplog: pytest.LogCaptureFixture) -> None:
        """The store stays away until the session closes."""
        store, shaky, _ = make()
        shaky.error = OSError("nobody there")
        for at in range(MAX_UNWRITTEN + 7):
            await store.put(summary(f"k{at}"))
        await store.close()
        await store.close()
        assert [line.getMessage() for line in caplog.records if " 7 summaries and records" in line.getMessage()] == [
            caplog.messages[-1]
        ]

    @timeless
    async def test_a_put_waits_for_its_write_no_longer_than_it_may(self) -> None:
        """The write goes on."""
        store, shaky, _ = make(timeout=1.0)
        shaky.seconds = 0.8
        await store.put(summary("a"))
        assert await shaky.kept.get(["a"]) == {"a": summary("a")}
        await store.put(summary("b"))
        assert time() == pytest.approx(1.0)
        assert await shaky.kept.get(["b"]) == {}
        await asyncio.sleep(1)
        assert await shaky.kept.get(["b"]) == {"b": summary("b")}

    @timeless
    async def test_the_newest_of_two_that_are_put_at_once_stays(self) -> None:
        """Also when the older one is being written just then."""
        store, shaky, _ = make()
        shaky.seconds = 0.2
        older = asyncio.create_task(store.put(summary("a", "older")))
        await settle()
        await store.put(summary("a", "newer"))
        await older
        assert await shaky.kept.get(["a"]) == {"a": summary("a", "newer")}
        assert shaky.calls == ["put", "put"]

    @timeless
    async def test_a_put_that_is_cancelled_is_written_all_the_same(self) -> None:
        """Later puts do not disturb it."""
        store, shaky, _ = make()
        shaky.seconds = 0.5
        put = asyncio.create_task(store.put(summary("a")))
        await settle()
        put.cancel()
        await asyncio.wait({put})
        assert put.cancelled()
        await store.put(summary("b"))
        await asyncio.sleep(1)
        assert (await shaky.kept.get(["a", "b"])).keys() == {"a", "b"}

    @timeless
    async def test_a_trial_that_is_cancelled_leaves_nothing_behind(self) -> None:
        """Its call goes on and decides; the next pause ends as always."""
        store, shaky, clock = make(timeout=1.0)
        shaky.error = OSError("nobody there")
        await store.get(["a"])
        shaky.error, shaky.seconds = None, HANGS
        clock.time += 31
        trial = asyncio.create_task(store.get(["a"]))
        await settle()
        trial.cancel()
        await asyncio.wait({trial})
        await asyncio.sleep(2)
        shaky.seconds = 0.0
        await shaky.kept.put(summary("a"))
        clock.time += 31
        assert await store.get(["a"]) == {"a": summary("a")}

    @timeless
    async def test_an_entry_that_is_refused_again_is_given_up(self) -> None:
        """One that is too large for the server does not hold up the others for ever."""
        store, shaky, clock = make()
        shaky.refuses = {"large"}
        await store.put(summary("large"))
        for key in "abc":
            await store.put(summary(key))
        for _ in range(4):
            clock.time += 31
            await store.get(["x"])
        assert (await shaky.kept.get(["a", "b", "c"])).keys() == {"a", "b", "c"}
        shaky.calls.clear()
        await store.put(summary("d"))
        assert shaky.calls == ["put"]
        assert (await store.get(["large"])).keys() == {"large"}

    @timeless
    async def test_a_store_that_takes_nothing_warns_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """Read-only, or full: reads alone do not count as recovery while something waits to be written."""
        store, shaky, clock = make()
        for at in range(20):
            shaky.refuses.add(f"k{at}")
            await store.put(summary(f"k{at}"))
            await store.get(["x"])
            clock.time += 31
        assert len(warnings_of(caplog)) == 1
