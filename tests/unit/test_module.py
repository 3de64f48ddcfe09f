"""mount() and on_session_ready(): what the host calls, on the host's own mock coordinator."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.events import ALL_EVENTS as KERNEL_EVENTS
from amplifier_core.testing import MockCoordinator

import context_summarize
from context_summarize import ConfigError, SummarizingContextManager, TemplateError, mount, on_session_ready
from context_summarize.events import ALL_EVENTS
from context_summarize.testing import ScriptedProvider, tool_session

SETTINGS: dict[str, Any] = {"segment_tokens": 64, "summary_tokens": 32, "keep_recent": 4, "cache": "memory"}


async def mounted(config: Any = None) -> tuple[MockCoordinator, SummarizingContextManager, Any]:
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, config)
    manager = coordinator.get("context")
    assert isinstance(manager, SummarizingContextManager)
    return coordinator, manager, cleanup


async def declared_events(coordinator: MockCoordinator) -> list[str]:
    """What all modules contribute."""
    return [name for names in await coordinator.collect_contributions("observability.events") for name in names]


class TestMount:
    @pytest.mark.parametrize("config", [None, {}, SETTINGS, {"protected_recent": 0.3}])
    async def test_it_mounts_a_manager_and_returns_a_cleanup(self, config: Any) -> None:
        """At the mount point "context"; nothing and None are the defaults."""
        coordinator, manager, cleanup = await mounted(config)
        assert [entry["mount_point"] for entry in coordinator.mount_history] == ["context"]
        assert await manager.get_messages_for_request() == []
        assert not callable(manager), "the host would call it"
        assert asyncio.iscoroutinefunction(cleanup)
        await cleanup()

    async def test_without_a_config_it_mounts_too(self) -> None:
        """The host may leave it out."""
        coordinator = MockCoordinator()
        await (await mount(coordinator))()
        assert isinstance(coordinator.get("context"), SummarizingContextManager)

    async def test_it_may_run_twice(self) -> None:
        """The host runs it on a mock coordinator first, for validation."""
        first, second = await mounted(SETTINGS), await mounted(SETTINGS)
        await first[2]()
        await first[2]()
        await second[1].add_message(tool_session(1)[0])
        assert await second[1].get_messages() == tool_session(1)[:1]
        assert await first[1].get_messages() == []
        await second[2]()

    async def test_its_events_are_declared_once(self) -> None:
        """Through observability.events: those that the kernel declares are added by the hook itself."""
        coordinator, _, cleanup = await mounted({})
        declared = await declared_events(coordinator)
        assert sorted([*declared, *(set(KERNEL_EVENTS) & set(ALL_EVENTS))]) == sorted(ALL_EVENTS)
        await cleanup()

    async def test_mounted_twice_it_declares_them_once(self) -> None:
        """On one coordinator, as after a failed start, on a mock before that, and beside a session of its own."""
        validating = await mounted({})
        await validating[2]()
        coordinator = MockCoordinator()
        first = await mount(coordinator, SETTINGS)
        second = await mount(coordinator, SETTINGS)
        sub_session = await mounted(SETTINGS)
        for each in (coordinator, sub_session[0]):
            declared = await declared_events(each)
            assert len(declared) == len(set(declared)) > 0
        for cleanup in (first, second, sub_session[2]):
            await cleanup()

    def test_it_touches_nothing_outside(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """No file, no folder, no network: it must be repeatable."""
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)

        async def run() -> None:
            _, _, cleanup = await mounted({})
            await cleanup()

        asyncio.run(run())
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("config", "says"),
        [
            ({"keep_recnt": 3}, "keep_recent"),
            ({"keep_recent": -1}, "-1"),
            ({"compact_threshold": 2}, "compact_threshold"),
            ({"summary_role": "tool"}, "tool"),
            (["keep_recent"], "mapping"),
        ],
    )
    async def test_a_wrong_setting_is_an_error_at_mount(self, config: Any, says: str) -> None:
        """It names key, value and remedy; nothing is mounted."""
        coordinator = MockCoordinator()
        with pytest.raises(ConfigError, match=says):
            await mount(coordinator, config)
        assert coordinator.mount_history == []

    async def test_a_wrong_prompt_set_is_an_error_at_mount(self, tmp_path: Path) -> None:
        """It names file and variable; nothing is mounted."""
        coordinator = MockCoordinator()
        with pytest.raises(TemplateError, match="nobody"):
            await mount(coordinator, {"prompts": "nobody"})
        (tmp_path / "segment.md").write_text("Write $words words.")
        with pytest.raises(TemplateError, match=r"segment\.md.*fence"):
            await mount(coordinator, {"prompts": str(tmp_path)})
        assert coordinator.mount_history == []

    def test_it_says_what_kind_of_module_it_is(self) -> None:
        """As the loader asks."""
        assert context_summarize.__amplifier_module_type__ == "context"


class TestMeter:
    async def test_responses_are_heard_until_the_session_ends(self) -> None:
        """llm:response corrects the measuring."""
        coordinator, manager, cleanup = await mounted(SETTINGS)
        await manager.set_messages(tool_session(4))
        await manager.get_messages_for_request(10**6)
        tokens = await manager.get_token_count()
        heard = await coordinator.hooks.emit("llm:response", {"status": "ok", "usage": {"input_tokens": tokens + 300}})
        assert heard.action == "continue"
        assert await manager.get_token_count() == tokens + 300
        await cleanup()
        await manager.get_messages_for_request(10**6)
        await coordinator.hooks.emit("llm:response", {"status": "ok", "usage": {"input_tokens": tokens + 900}})
        assert await manager.get_token_count() == tokens + 300


class TestCleanup:
    async def test_it_ends_what_is_under_way(self) -> None:
        """No task is left at session end, and nobody waits for ever."""
        coordinator, manager, cleanup = await mounted(SETTINGS)
        provider = ScriptedProvider(gate=asyncio.Event())
        await manager.set_messages(tool_session(12))
        request = asyncio.create_task(manager.get_messages_for_request(900, provider))
        while not provider.calls:
            await asyncio.wait([request], timeout=0.001)
        await cleanup()
        view = await asyncio.wait_for(request, 10)
        assert view
        assert provider.cancelled == provider.calls
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert coordinator.get("context") is manager


class TestSessionReady:
    async def test_a_summary_provider_that_is_not_mounted_is_said_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """With the names of those that are; the session's own provider is used."""
        coordinator, _, cleanup = await mounted({**SETTINGS, "summary_provider": "smal"})
        await coordinator.mount("providers", ScriptedProvider(), name="small")
        with caplog.at_level(logging.ERROR):
            await on_session_ready(coordinator)
            await on_session_ready(coordinator)
        [record] = caplog.records
        assert "'smal' is not mounted (mounted: small)" in record.getMessage()
        await cleanup()

    @pytest.mark.parametrize("name", ["small", "provider-small", None])
    async def test_one_that_is_mounted_is_fine(self, name: str | None, caplog: pytest.LogCaptureFixture) -> None:
        """Nothing is said."""
        coordinator, _, cleanup = await mounted({**SETTINGS, "summary_provider": name})
        await coordinator.mount("providers", ScriptedProvider(), name="small")
        await on_session_ready(coordinator)
        assert caplog.records == []
        await cleanup()

    async def test_another_context_module_is_left_alone(self) -> None:
        """A session may have mounted one in our place."""
        coordinator = MockCoordinator()
        await on_session_ready(coordinator)
        await coordinator.mount("context", object())
        await on_session_ready(coordinator)
