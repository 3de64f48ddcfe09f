"""Which mounted provider a name means, its window, and the tokens that this leaves for a request."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock
from weakref import WeakSet

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_summarize.config import Config
from context_summarize.session.host import find_provider
from context_summarize.session.windows import Window, Windows, request_budget
from context_summarize.testing import ScriptedProvider
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import tool_session, user
from tests.support.virtual import run_virtually


def info(defaults: Any) -> Any:
    """A provider with `get_info().defaults` alone."""
    return SimpleNamespace(get_info=lambda: SimpleNamespace(defaults=defaults))


def model(answer: Any, defaults: Any = None, *, is_async: bool = False) -> Any:
    """A provider with `get_model_info()`; an exception is raised."""
    asked = (AsyncMock if is_async else Mock)(side_effect=[answer])
    return SimpleNamespace(get_model_info=asked, get_info=info(defaults).get_info)


SIZES = {"context_window": 100_000, "max_output_tokens": 8_000}
MODEL, KNOWN = SimpleNamespace(**SIZES), Window(100_000, 8_000)
WINDOWS: list[tuple[Any, Window | None]] = [
    (info(SIZES), KNOWN),
    (model(MODEL), KNOWN),
    (model(SIZES, {"context_window": 5}, is_async=True), KNOWN),
    (model(RuntimeError("no model"), SIZES), KNOWN),
    (model(SystemExit(1), SIZES, is_async=True), KNOWN),
    (model(asyncio.CancelledError(), is_async=True), None),
    (info(None), None),
    (info({"context_window": "100000"}), None),
    (info({"context_window": 9, "max_output_tokens": -1}), Window(9, 0)),
    (SimpleNamespace(get_model_info=5, get_info=None), None),
    (None, None),
]


async def test_the_window_is_read_from_wherever_the_provider_says_it():
    """get_model_info(), sync or async, then get_info().defaults; some offer neither, and some raise anything."""
    for provider, window in WINDOWS:
        assert await Windows(Config()).of(provider) == window


@pytest.mark.parametrize("size", [10**400, 10**12, float("inf"), float("nan"), 1e300])
async def test_an_absurd_window_is_unknown(size):
    windows = Windows(Config())
    assert await windows.of(info({"context_window": size})) is None
    assert await windows.of(info({"context_window": 8_000, "max_output_tokens": size})) == Window(8_000, 0)


def test_the_budget_is_what_output_and_margin_leave():
    """Of a model that can write more, a quarter; half the window where nothing is left."""
    assert Window(100_000, 8_000).budget(1_000) == 91_000
    assert Window(200_000, 128_000).budget(1_000) == 149_000
    assert Window(200_000, 128_000, 4_096).budget(1_000) == 194_904
    assert Window(10_000, 8_000, 9_000).budget(1_000) == 5_000
    assert Window(2_000, 500).budget(1_000) == 750
    assert Window(1, 1).budget(1_000) == 1


TOKENS = st.integers(1, 20_000) | st.integers(1, 2_000_000)
ROOMS = st.fixed_dictionaries(
    {"context_window": TOKENS, "max_output_tokens": TOKENS, "safety_margin": st.integers(0, 5_000)},
    optional={"token_budget": TOKENS, "max_tokens": st.integers(5_000, 2_000_000)},
)
"""Upper bounds hold any of these margins."""


@given(ROOMS, st.sampled_from(["context_window", "token_budget", "max_tokens"]), TOKENS)
@example({"context_window": 6_500, "max_output_tokens": 6_500, "safety_margin": 5_000}, "context_window", 200)
async def test_more_room_never_gives_a_smaller_budget(rooms, name, more):
    """Whatever the window, the output, the given budget and the upper bound are."""

    async def budget(**rooms: int) -> int:
        config = Config(safety_margin=rooms["safety_margin"], max_tokens=rooms.get("max_tokens"))
        return await request_budget(config, rooms.get("token_budget"), info(rooms))

    small = await budget(**rooms)
    assert 1 <= small <= max(rooms["context_window"], rooms.get("token_budget", 0))
    if name in rooms:
        assert small <= await budget(**{**rooms, name: rooms[name] + more})


class Hanging:
    """A provider whose `get_model_info()` answers so often, and then hangs and ignores its cancellation."""

    def __init__(self, answers: int = 0) -> None:
        self.asked, self._answers, self.released = 0, answers, asyncio.Event()

    async def get_model_info(self) -> Any:
        self.asked += 1
        while self.asked > self._answers and not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.released.wait()
        return MODEL


@pytest.mark.parametrize("answers", [0, 1])
def test_who_hangs_is_not_asked_again_meanwhile_and_its_last_known_window_counts(answers):
    """However long it takes; what comes in the end is asked anew."""

    async def session() -> None:
        provider, windows = Hanging(answers), Windows(Config())
        try:
            for _ in range(40):
                assert await windows.of(provider) == (KNOWN if answers else None)
                await asyncio.sleep(61)
            assert provider.asked == answers + 1
        finally:
            provider.released.set()
        await asyncio.sleep(61)
        assert await windows.of(provider) == KNOWN

    run_virtually(session())


def test_a_provider_is_asked_every_two_seconds_and_has_two_for_each_answer():
    """However often its window is wanted."""

    async def session() -> tuple[int, float]:
        loop, quick, windows = asyncio.get_running_loop(), Hanging(1_000), Windows(Config())
        for _ in range(100):
            assert await windows.of(quick) == KNOWN
            await asyncio.sleep(0.1)
        began, hangs = loop.time(), Hanging()
        await windows.of(SimpleNamespace(get_model_info=hangs.get_model_info, get_info=hangs.get_model_info))
        hangs.released.set()
        return quick.asked, loop.time() - began

    asked, taken = run_virtually(session())
    assert asked == 5
    assert taken == pytest.approx(4, abs=0.5)


async def test_a_host_with_a_new_provider_for_each_request_keeps_none_for_long_in_memory():
    windows, alive = Windows(Config()), WeakSet[Hanging]()
    for _ in range(100):
        alive.add(provider := Hanging(1))
        await windows.of(provider)
    assert len(alive) < 20


def test_a_question_that_hangs_ends_with_the_session():
    async def session() -> None:
        windows, never = Windows(Config()), asyncio.Event()
        assert await windows.of(SimpleNamespace(get_model_info=never.wait)) is None
        await windows.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtually(session())


class Blocking:
    """A provider whose `get_model_info()` is no coroutine, and blocks its thread."""

    def __init__(self) -> None:
        self.asked, self.released = 0, threading.Event()

    def get_model_info(self) -> Any:
        self.asked += 1
        self.released.wait()
        return MODEL


async def test_methods_that_block_hold_up_no_other_work_and_no_exit():
    """However many: they take none of the threads that other work needs, and no process waits for them at its end."""
    providers, before = [Blocking() for _ in range(40)], {*threading.enumerate()}
    windows = Windows(Config(), lambda: all(provider.asked for provider in providers))  # then the host cancels
    try:
        await asyncio.gather(*map(windows.of, providers))
        assert await windows.of(providers[-1]) is None
        assert [provider.asked for provider in providers] == [1] * 40
        assert [thread for thread in {*threading.enumerate()} - before if not thread.daemon] == []
        assert await asyncio.wait_for(asyncio.to_thread(int), 30) == 0
    finally:
        for provider in providers:
            provider.released.set()


async def test_a_margin_above_the_window_is_told_once(caplog):
    """Which window it is comes to light at the first request."""
    windows, provider = Windows(Config(safety_margin=5_000)), info({"context_window": 4_096})
    assert [await windows.of(provider) for _ in range(2)] == [Window(4_096, 0)] * 2
    [record] = caplog.records
    assert "safety_margin is 5000, more than the window of 'SimpleNamespace' (4096 tokens)" in record.getMessage()


def test_a_provider_is_meant_by_mount_name_instance_id_module_id_or_its_own_name():
    """All are what users write; what is not mounted is not found."""
    openai, work, small = SimpleNamespace(name="openai"), SimpleNamespace(name="openai"), object()
    # Its module mounts itself under a name of its own.
    azure = type("Azure", (), {"__module__": "amplifier_module_provider_azure_openai.provider"})()
    mounted = {"small": small, "openai-work": work, "openai": openai, "azure": azure}
    meant = {
        "openai": openai,
        "openai-work": work,
        "provider-small": small,
        "provider-azure-openai": azure,
        "azure": azure,
        "provider-vllm": None,
        "": None,
    }
    assert {name: find_provider(name, mounted) for name in meant} == meant
    assert find_provider("provider-openai", {"small": small, "openai-work": work}) is work


@pytest.mark.parametrize("listed", [3, 30])
async def test_a_request_ends_with_twenty_of_the_hosts_jobs_at_most(listed):
    host: Any = Recorder()
    host.get_capability = {"context.active_operations": [{"job": f"job-{at}"} for at in range(listed)]}.get
    made = await Managed(100_000, host=host).add([user("Hello.")])
    assert str((await made.view())[-1]["content"]).count("job-") == min(listed, 20)


def test_a_role_that_is_never_resolved_costs_a_session_ten_seconds_once():
    async def session() -> tuple[float, int]:
        loop, never = asyncio.get_running_loop(), asyncio.Event()
        host: Any = Recorder({"main": ScriptedProvider()})
        host.get_capability = {"model_role_resolver": SimpleNamespace(resolve=lambda _: never.wait())}.get
        made = await Managed(900, host=host, summary_model_role="fast", keep_recent=4).take(tool_session(12))
        for _ in range(3):
            await (await made.add(tool_session(4))).view()
        taken = loop.time()
        await made.manager.close()
        return taken, made.host.compactions

    taken, compactions = run_virtually(session())
    assert taken == pytest.approx(10, abs=1)
    assert compactions > 1


def test_a_role_whose_resolver_asks_for_a_request_holds_none_up():
    async def session() -> float:
        host: Any = Recorder({"main": ScriptedProvider()})
        asked: list[str] = []

        async def resolve(role: str) -> list[Any]:
            asked.append(role)
            if len(asked) == 1:
                await made.view()
            return []

        host.get_capability = {"model_role_resolver": SimpleNamespace(resolve=resolve)}.get
        made = await Managed(900, host=host, summary_model_role="fast", keep_recent=4).take(tool_session(12))
        await made.view()
        taken = asyncio.get_running_loop().time()
        await made.manager.close()
        return taken

    assert run_virtually(session()) < 1
