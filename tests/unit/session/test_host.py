"""host.py: the window of a provider, the budget of a request, and which provider is meant."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.session.host import (
    Providers,
    Window,
    Windows,
    find_provider,
    provider_window,
    request_budget,
)
from context_summarize.summaries.request import Target


class Info:
    """A provider with `get_info().defaults` alone."""

    def __init__(self, defaults: Any, name: Any = "info") -> None:
        self.defaults = defaults
        self.name = name

    def get_info(self) -> Any:
        return SimpleNamespace(defaults=self.defaults)


def model(answer: Any, defaults: Any = None, *, is_async: bool = False) -> Any:
    """A provider with `get_model_info()`; an exception is raised."""

    def get_model_info() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def later() -> Any:
        return get_model_info()

    made: Any = Info(defaults)
    made.get_model_info = later if is_async else get_model_info
    return made


SIZES = {"context_window": 100_000, "max_output_tokens": 8_000}
MODEL = SimpleNamespace(**SIZES)
WINDOWS: list[tuple[Any, Window | None]] = [
    (Info(SIZES), Window(100_000, 8_000)),
    (Info({"context_window": 50_000}), Window(50_000, 0)),
    (model(MODEL), Window(100_000, 8_000)),
    (model(SIZES, {"context_window": 5}, is_async=True), Window(100_000, 8_000)),
    (model(SimpleNamespace(context_window=None), SIZES), Window(100_000, 8_000)),
    (model(RuntimeError("no model"), SIZES), Window(100_000, 8_000)),
    (model(RuntimeError("no model"), SIZES, is_async=True), Window(100_000, 8_000)),
    (Info(None), None),
    (Info({"context_window": -5}), None),
    (Info({"context_window": "100000"}), None),
    (Info({"context_window": 9, "max_output_tokens": -1}), Window(9, 0)),
    (SimpleNamespace(get_model_info=5, get_info=None), None),
    (model(ValueError("not configured")), None),
    (None, None),
]


class TestWindow:
    async def test_the_window_is_read_from_wherever_the_provider_says_it(self) -> None:
        """get_model_info(), sync or async, then get_info().defaults; some offer neither, and some raise."""
        for provider, window in WINDOWS:
            assert await provider_window(provider) == window

    def test_the_budget_is_what_output_and_margin_leave(self) -> None:
        """Of a model that can write more, a quarter; half the window where nothing is left."""
        assert Window(100_000, 8_000).budget(1_000) == 91_000
        assert Window(100_000, 0).budget(0) == 100_000
        assert Window(200_000, 128_000).budget(1_000) == 149_000
        assert Window(200_000, 128_000, 4_096).budget(1_000) == 194_904
        assert Window(10_000, 8_000, 9_000).budget(1_000) == 5_000
        assert Window(2_000, 500).budget(1_000) == 750
        assert Window(1, 1).budget(1_000) == 1


class TestBudget:
    @pytest.mark.parametrize(
        ("settings", "given", "provider", "budget"),
        [
            ({}, 5_000, Info(SIZES), 5_000),
            ({}, None, Info(SIZES), 91_000),
            ({}, None, None, 200_000),
            ({}, 0, Info(SIZES), 91_000),
            ({"max_tokens": 50_000}, None, None, 50_000),
            ({"max_tokens": 500_000}, None, Info(SIZES), 91_000),
            ({"max_tokens": 50_000}, 80_000, None, 50_000),
            ({"max_tokens": 50_000}, 8_000, None, 8_000),
        ],
    )
    async def test_the_budget_has_an_order_and_an_upper_bound(
        self, settings: dict[str, int], given: int | None, provider: Any, budget: int
    ) -> None:
        """The argument, else the window, else max_tokens, else 200,000; max_tokens bounds them all."""
        assert await request_budget(Config(**settings), given, provider) == budget  # type: ignore[arg-type]


def coordinator(**providers: Any) -> Any:
    return SimpleNamespace(get=lambda name: providers if name == "providers" else None)


class TestProviders:
    async def test_the_provider_of_a_request_is_the_one_passed_the_last_seen_or_the_first_mounted(self) -> None:
        """In this order."""
        one, two, other = Info({}), Info({}), Info({})
        providers = Providers(coordinator(one=one, two=two), Config())
        assert providers.seen(None) is one
        assert providers.seen(other) is other
        assert providers.seen(None) is other
        assert providers.seen(two) is two
        assert await providers.summariser() == Target(two, "two")

    async def test_nothing_is_said_while_nothing_is_mounted_yet(self, caplog: pytest.LogCaptureFixture) -> None:
        """Before the session is ready a name cannot be wrong; when it is ready, it can."""
        own = Info({})
        providers = Providers(coordinator(), Config(summary_provider="three"))
        providers.seen(own)
        assert await providers.summariser() == Target(own, "info")
        assert caplog.records == []
        providers.check()
        assert "mounted: none" in caplog.records[0].getMessage()

    @pytest.mark.parametrize(
        ("provider", "name"), [(Info({}, "mine"), "mine"), (Info({}, 5), "Info"), (object(), "object")]
    )
    async def test_a_provider_that_is_not_mounted_is_called_by_its_own_name_or_its_type(
        self, provider: Any, name: str
    ) -> None:
        """One that is mounted is called as it is mounted."""
        providers = Providers(coordinator(one=Info({})), Config(summary_model="small"))
        assert providers.seen(provider) is provider
        assert await providers.summariser() == Target(provider, name, "small")


class Azure:
    """A provider of the module `provider-azure-openai`, which mounts itself under a name of its own."""


Azure.__module__ = "amplifier_module_provider_azure_openai.provider"


def test_a_provider_is_meant_by_mount_name_instance_id_module_id_or_its_own_name() -> None:
    """All are what users write; what is not mounted is not found."""
    openai, work, azure, small = Info({}, "openai"), Info({}, "openai"), Azure(), Info({}, "small")
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


class Hanging:
    """A provider whose `get_model_info()` answers once, and then hangs; it may ignore its cancellation."""

    def __init__(self, answers: int, *, deaf: bool = False) -> None:
        self.asked = 0
        self.released = asyncio.Event()
        self._answers = answers
        self._deaf = deaf

    async def get_model_info(self) -> Any:
        self.asked += 1
        if self.asked <= self._answers:
            return MODEL
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                if not self._deaf:
                    raise
        return MODEL


class TestHangs:
    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("context_summarize.session.host._INFO_SECONDS", 0.01)
        monkeypatch.setattr("context_summarize.session.host._PAUSE", 0)
        monkeypatch.setattr("context_summarize.background.GRACE", 0.001)

    async def test_a_provider_that_hangs_at_one_question_is_asked_the_other(self) -> None:
        class Half(Hanging):
            def get_info(self) -> Any:
                return SimpleNamespace(defaults={"context_window": 12_000})

        window = await Windows(Config()).of(Half(answers=0))
        assert window is not None
        assert window.context == 12_000

    @pytest.mark.parametrize("deaf", [False, True])
    async def test_the_last_known_window_counts_while_a_provider_hangs(self, deaf: bool) -> None:
        """It is asked once, not for every request, and no further question is left behind."""
        provider, windows = Hanging(1, deaf=deaf), Windows(Config())
        for _ in range(5):
            assert await windows.of(provider) == Window(100_000, 8_000)
        assert provider.asked == 2
        assert len(asyncio.all_tasks()) == 1 + deaf
        provider.released.set()
        await asyncio.sleep(0)

    async def test_a_margin_above_the_window_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """Which window it is comes to light at the first request."""
        windows = Windows(Config(safety_margin=5_000))
        provider = Info({"context_window": 4_096})
        await windows.of(Info(SIZES))
        assert [await windows.of(provider) for _ in range(2)] == [Window(4_096, 0)] * 2
        [record] = caplog.records
        assert "safety_margin is 5000, more than the window of 'Info' (4096 tokens)" in record.getMessage()

    async def test_a_provider_that_always_hangs_has_no_window(self) -> None:
        """And a request is served all the same."""
        provider = Hanging(0)
        assert await provider_window(provider) is None
        assert await request_budget(Config(), None, provider) == DEFAULT_BUDGET

    @pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(1)], ids=repr)
    async def test_what_is_no_exception_is_survived_too(self, error: BaseException) -> None:
        """Raised by the provider, it ends neither the request nor the event loop."""

        class Raising:
            async def get_model_info(self) -> Any:
                raise error

        assert await provider_window(Raising()) is None

    async def test_a_method_that_blocks_is_not_waited_for(self) -> None:
        """The event loop goes on meanwhile, and the method is not called again for a minute."""
        released, asked = threading.Event(), []

        class Blocking:
            def get_model_info(self) -> Any:
                asked.append(threading.current_thread())
                released.wait(20)
                return MODEL

        provider, windows = Blocking(), Windows(Config())
        try:
            for _ in range(3):
                assert await windows.of(provider) is None
            assert len(asked) == 1
        finally:
            released.set()
