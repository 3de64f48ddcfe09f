"""A persistent store that fails, hangs or is away costs no request, and one warning."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.unit.stores.shaky import (
    HANGS,
    LOG,
    make,
    record,
    said,
    settle,
    stop_process,
    summary,
    time,
    timeless,
    warnings_of,
)


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
        """A slow store is used again after a pause of its callers."""
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
        assert sorted(round(wait, 3) for wait in waits) == [0.0] * 19 + [0.1]

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
        """Calls that were under way when another call failed change nothing: a trial decides."""
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
    async def test_a_trial_has_the_whole_timeout_and_its_caller_a_tenth(self) -> None:
        """What it reads is in memory then, and the next call has its whole time again."""
        store, shaky, clock = make(timeout=1.0)
        for key in "ab":
            await shaky.kept.put(summary(key))
        shaky.seconds = HANGS
        await store.get(["a"])
        shaky.seconds = 0.9
        clock.time += 31
        assert await store.get(["a"]) == {}
        assert time() == pytest.approx(1.1)
        await asyncio.sleep(0.9)
        assert await store.get(["a", "b"]) == {"a": summary("a"), "b": summary("b")}

    @timeless
    async def test_a_store_that_keeps_hanging_costs_each_trial_a_tenth_of_the_timeout(self) -> None:
        """An hour of a server that is stopped: one second at first, then 0.1 s every half minute."""
        store, shaky, clock = make(timeout=1.0)
        shaky.seconds = HANGS
        await store.get(["a"])
        begun = time()
        for _ in range(120):
            clock.time += 31
            await store.get(["a"])
            await store.put(summary("b"))
            waited = time() - begun
            await asyncio.sleep(31)
            begun = time()
            assert waited <= 0.11

    @timeless
    async def test_time_in_which_the_process_was_stopped_is_no_waiting(self, caplog: pytest.LogCaptureFixture) -> None:
        """The answer lay ready all the while: it is taken, and the store is used on at once."""
        store, shaky, _ = make(timeout=1.0)
        await shaky.kept.put(summary("a"))
        shaky.stubborn = True
        for _ in range(3):
            reading = asyncio.create_task(store.get(["a", "x"]))
            await settle()
            stop_process(600)
            await settle()
            shaky.release.set()
            assert (await reading).keys() == {"a"}
            shaky.release.clear()
        assert warnings_of(caplog) == []
