"""Memory over a persistent store: what is had from where, and that no trouble of the persistent one costs anything."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.field.virtual import run_virtually
from context_summarize.core.nodes import CompactionRecord, Summary
from context_summarize.stores.layered import MAX_UNWRITTEN, LayeredStore
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


class Shaky:
    """A store that works, fails, hangs, dawdles or stops at will, and counts its calls."""

    def __init__(self) -> None:
        self.kept = MemoryStore()
        self.calls: list[str] = []
        self.error: BaseException | None = None
        self.seconds = 0.0
        """What a call takes; infinite: it hangs."""
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

    async def find_records(self, digests: Sequence[str]) -> list[CompactionRecord]:
        await self._called(f"find {' '.join(digests)}")
        return await self.kept.find_records(digests)

    async def put_record(self, record: CompactionRecord) -> None:
        await self._called("put_boundary")
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


def record(digest: str, frontier: int = 3) -> CompactionRecord:
    return CompactionRecord(digest, frontier, 9, 512, 100, ())


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(line.levelname, line.getMessage()) for line in caplog.records if line.name == LOG]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for level, text in said(caplog) if level == "WARNING"]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


HANGS = float("inf")


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
        for digest in ("d1", "d2", "d3"):
            await shaky.kept.put_record(record(digest))
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
    async def test_a_digest_reaches_neither(self) -> None:
        """The error is the caller's, not the store's: nothing is paused."""
        store, shaky, _ = make()
        with pytest.raises(ValueError, match="a fallback summary is never stored"):
            await store.put(replace(summary("a"), fallback=True))
        assert await store.get(["a"]) == {}
        assert shaky.calls == ["get"]


class TestTrouble:
    @timeless
    async def test_a_store_that_fails_is_left_alone_for_a_while(self, caplog: pytest.LogCaptureFixture) -> None:
        """One warning that names the store, the error and the remedy; memory serves; then one trial."""
        caplog.set_level(logging.INFO, LOG)
        store, shaky, clock = make(retry_after=30.0)
        await store.put(summary("a"))
        shaky.calls.clear()
        shaky.error = OSError("nobody there")
        assert await store.get(["b"]) == {}
        assert await store.get(["a", "b"]) == {"a": summary("a")}
        assert await store.find_records(["d"]) == []
        assert await store.is_empty()
        clock.time += 29.9
        assert await store.get(["b"]) == {}
        assert shaky.calls == ["get"]
        assert said(caplog) == [
            (
                "WARNING",
                "the shaky store: nobody there; summaries are kept in memory meanwhile, and the store is tried again "
                "every 30 s: check that it is there and can be read and written",
            )
        ]
        clock.time += 0.2
        assert await store.get(["b"]) == {}
        assert await store.get(["b"]) == {}
        assert shaky.calls == ["get", "get"]
        assert len(said(caplog)) == 1

    @timeless
    async def test_the_next_warning_comes_after_it_has_been_back(self, caplog: pytest.LogCaptureFixture) -> None:
        """That it works again is logged, but not as a warning."""
        caplog.set_level(logging.INFO, LOG)
        store, shaky, clock = make()
        for _ in range(2):
            shaky.error = OSError("nobody there")
            for _ in range(3):
                await store.get(["a"])
                clock.time += 31
            shaky.error = None
            await store.get(["a"])
        assert [level for level, _ in said(caplog)] == ["WARNING", "INFO"] * 2
        assert said(caplog)[1] == ("INFO", "the shaky store works again")

    @timeless
    async def test_many_calls_of_a_request_wait_once_for_a_store_that_hangs(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """One after the other: the first waits for the timeout, the others not at all."""
        store, shaky, _ = make(timeout=1.0)
        shaky.seconds = HANGS
        for at in range(10):
            await store.get([f"k{at}"])
            await store.put(summary(f"k{at}"))
            await store.find_records(["d"])
        assert time() == pytest.approx(1.0)
        assert shaky.calls == ["get"]
        assert len(warnings_of(caplog)) == 1
        assert "no answer within 1 s" in caplog.text

    @timeless
    async def test_twenty_requests_at_once_wait_once_for_a_store_that_hangs(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Side by side, and some of them later than others."""
        store, shaky, _ = make(timeout=1.0)
        shaky.seconds = HANGS

        async def request(at: int) -> None:
            await asyncio.sleep(at * 0.04)
            await store.put(summary(f"k{at}"))
            assert await store.get([f"k{at}"]) == {f"k{at}": summary(f"k{at}")}
            assert await store.get([f"x{at}"]) == {}
            assert await store.find_records(["d"]) == []

        await asyncio.gather(*(request(at) for at in range(20)))
        assert time() == pytest.approx(1.0)
        assert len(warnings_of(caplog)) == 1

    @timeless
    async def test_slow_answers_do_not_add_up(self, caplog: pytest.LogCaptureFixture) -> None:
        """Each answer comes within the timeout; all together still cost a request one second and little more."""
        store, shaky, _ = make(timeout=1.0)
        shaky.seconds = 0.9
        for at in range(10):
            await store.get([f"k{at}"])
            await store.put_record(record(f"d{at}"))
        assert time() <= 1.0 + 0.2
        assert warnings_of(caplog) == []

    @timeless
    async def test_an_answer_that_comes_too_late_for_the_caller_is_kept(self) -> None:
        """The next one finds it in memory."""
        store, shaky, _ = make(timeout=1.0)
        for key in "ab":
            await shaky.kept.put(summary(key))
        shaky.seconds = 0.9
        assert await store.get(["a"]) == {"a": summary("a")}
        assert await store.get(["b"]) == {}
        await asyncio.sleep(1)
        shaky.calls.clear()
        assert await store.get(["b"]) == {"b": summary("b")}
        assert shaky.calls == []

    @timeless
    async def test_patience_comes_back_with_time(self) -> None:
        """A slow store is of use again once the caller has had a rest."""
        store, shaky, _ = make(timeout=1.0)
        for key in "abc":
            await shaky.kept.put(summary(key))
        shaky.seconds = 0.9
        assert await store.get(["a"]) != {}
        assert await store.get(["b"]) == {}
        await asyncio.sleep(10)
        assert await store.get(["c"]) != {}

    @timeless
    async def test_at_most_one_of_many_tries_again(self) -> None:
        """The others are served from memory meanwhile, without a wait."""
        store, shaky, clock = make(timeout=1.0)
        shaky.error = OSError("nobody there")
        await store.get(["a"])
        shaky.calls.clear()
        shaky.error, shaky.seconds = None, HANGS
        clock.time += 31
        waits = []

        async def request(at: int) -> None:
            start = time()
            await store.get([f"k{at}"])
            waits.append(time() - start)

        await asyncio.gather(*(request(at) for at in range(20)))
        assert shaky.calls == ["get"]
        assert sorted(round(wait, 3) for wait in waits) == [0.0] * 19 + [1.0]

    @timeless
    async def test_a_call_that_ignores_its_cancellation_holds_nobody_up(self) -> None:
        """It is left behind, and the store is paused as always."""
        store, shaky, clock = make(timeout=1.0)
        shaky.stubborn = True
        assert await store.get(["a"]) == {}
        await store.put(summary("b"))
        assert time() == pytest.approx(1.0)
        clock.time += 31
        assert await store.get(["a"]) == {}
        await store.close()
        assert time() <= 4.0
        shaky.release.set()
        await settle()

    @timeless
    async def test_a_call_that_is_cancelled_from_within_is_a_failure(self, caplog: pytest.LogCaptureFixture) -> None:
        """The caller is not cancelled by it."""
        store, shaky, _ = make()
        shaky.error = asyncio.CancelledError()
        assert await store.get(["a"]) == {}
        assert len(warnings_of(caplog)) == 1

    @timeless
    async def test_an_error_without_words_is_named(self, caplog: pytest.LogCaptureFixture) -> None:
        """By its kind; and a text that names the store itself is not given the name twice."""
        store, shaky, _ = make()
        shaky.error = TimeoutError()
        await store.get(["a"])
        assert "the shaky store: TimeoutError;" in caplog.text
        caplog.clear()
        store, shaky, _ = make()
        shaky.error = OSError("the shaky store is locked")
        await store.get(["a"])
        assert warnings_of(caplog)[0].startswith("the shaky store is locked;")

    @pytest.mark.parametrize("outcome", [None, OSError("nobody there")])
    @timeless
    async def test_an_older_call_neither_ends_nor_lengthens_the_pause(self, outcome: Exception | None) -> None:
        """Whatever becomes of what was under way when another call failed: a trial decides."""
        store, shaky, clock = make(timeout=1.0)
        shaky.seconds = 0.5
        slow = asyncio.create_task(store.get(["a"]))
        await settle()
        shaky.seconds, shaky.error = 0.0, OSError("nobody there")
        await store.get(["b"])
        shaky.error = outcome
        clock.time += 20
        await slow
        shaky.calls.clear()
        await store.get(["b"])
        assert shaky.calls == []
        clock.time += 11
        await store.get(["b"])
        assert shaky.calls == ["get"]

    @timeless
    async def test_a_trial_has_the_whole_timeout(self) -> None:
        """However much waiting was spent before the pause."""
        store, shaky, clock = make(timeout=1.0)
        await shaky.kept.put(summary("a"))
        shaky.seconds = HANGS
        await store.get(["a"])
        shaky.seconds = 0.9
        clock.time += 31
        assert await store.get(["a"]) == {"a": summary("a")}


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
    async def test_the_newest_of_what_is_unwritten_is_kept(self) -> None:
        """Bounded; memory has the rest."""
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
        """And whoever puts later is not in its way."""
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


class TestClose:
    @timeless
    async def test_close_waits_for_what_is_being_written(self) -> None:
        """Then lets go, and leaves no task."""
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
    """No outage costs an entry, an order of writes or more than a second a call; once it is mended, all is written."""

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
