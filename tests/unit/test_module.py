"""mount() and on_session_ready(): what the host calls, on the host's own mock coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator

from context_summarize import SummarizingContextManager, TemplateError, mount, on_session_ready

SETTINGS: dict[str, Any] = {"segment_tokens": 64, "keep_recent": 4, "cache": "memory"}


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

    async def test_a_wrong_prompt_set_is_an_error_at_mount(self, tmp_path: Path) -> None:
        """It names file and variable; nothing is mounted."""
        coordinator = MockCoordinator()
        with pytest.raises(TemplateError, match="nobody"):
            await mount(coordinator, {"prompts": "nobody"})
        (tmp_path / "segment.md").write_text("Write $words words.")
        with pytest.raises(TemplateError, match=r"segment\.md.*fence"):
            await mount(coordinator, {"prompts": str(tmp_path)})
        assert coordinator.mount_history == []


class TestSessionReady:
    async def test_another_context_module_is_left_alone(self) -> None:
        """A session may have mounted one in our place."""
        coordinator = MockCoordinator()
        await on_session_ready(coordinator)
        await coordinator.mount("context", object())
        await on_session_ready(coordinator)
